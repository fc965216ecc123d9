import { expect, test } from 'bun:test'
import { openEmulator } from '../../src/runtime/emulator.ts'

async function opened() {
  const terminal = await openEmulator({ columns: 80, rows: 24, scrollback: 100 })
  const write = (text: string) => new Promise<void>((done) => terminal.write(text, done))
  const row = (number: number) => terminal.buffer.active.getLine(number)?.translateToString(true)
  return { terminal, write, row }
}

test('accents, Thai and joined emoji stay whole', async () => {
  const { terminal, write, row } = await opened()
  await write('e\u0301\u0323 สวัสดี 👨‍👩‍👧 b')
  expect(row(0)).toBe('e\u0301\u0323 สวัสดี 👨‍👩‍👧 b')
  expect(terminal.buffer.active.getLine(0)?.getCell(0)?.getChars()).toBe('e\u0301\u0323')
})

test('no program fills memory: not by combining characters, links or titles without end', async () => {
  const { terminal, write } = await opened()
  const titles: number[] = []
  terminal.onTitleChange((title) => titles.push(title.length))
  Bun.gc(true)
  const before = process.memoryUsage().rss
  for (let round = 0; round < 5; round += 1) await write(`a${'\u0301'.repeat(1_000_000)}`)
  expect(terminal.buffer.active.getLine(0)?.getCell(0)?.getChars().length).toBeLessThan(50)
  const long = 'x'.repeat(1_000_000)
  for (let round = 0; round < 60; round += 1) await write(`\x1b]8;;http://${round}${long}\x07x\x1b]8;;\x07`)
  for (let round = 0; round < 12; round += 1) await write(`\x1b]0;${round}${long}\x07\x1b[22t`)
  await write('\x1b]0;short\x07')
  Bun.gc(true)
  expect(titles).toEqual(['short'.length])
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 2 ** 20)
}, 120_000)
