import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { openEmulator } from '../../src/runtime/emulator.ts'

async function opened() {
  const emulator = await openEmulator({ columns: 80, rows: 24, scrollback: 100 })
  const { terminal } = emulator
  const write = async (text: string) => {
    expect(await emulator.draw(new TextEncoder().encode(text))).toBeNull()
  }
  const row = (number: number) => terminal.buffer.active.getLine(number)?.translateToString(true)
  return { terminal, write, row }
}

test('accents, Thai and joined emoji stay whole', async () => {
  const { terminal, write, row } = await opened()
  await write('e\u0301\u0323 สวัสดี 👨‍👩‍👧 b')
  expect(row(0)).toBe('e\u0301\u0323 สวัสดี 👨‍👩‍👧 b')
  expect(terminal.buffer.active.getLine(0)?.getCell(0)?.getChars()).toBe('e\u0301\u0323')
})

/** Returns the bytes that are in use: what the process has of the system may be garbage of other tests. */
function memoryInUse(): number {
  Bun.gc(true)
  return heapStats().heapSize
}

test('no program fills memory: not by combining characters, links or titles without end', async () => {
  const { terminal, write } = await opened()
  const titles: number[] = []
  terminal.onTitleChange((title) => titles.push(title.length))
  const before = memoryInUse()
  for (let round = 0; round < 5; round += 1) await write(`a${'\u0301'.repeat(1_000_000)}`)
  expect(terminal.buffer.active.getLine(0)?.getCell(0)?.getChars().length).toBeLessThan(50)
  const long = 'x'.repeat(1_000_000)
  for (let round = 0; round < 60; round += 1) await write(`\x1b]8;;http://${round}${long}\x07x\x1b]8;;\x07`)
  for (let round = 0; round < 12; round += 1) await write(`\x1b]0;${round}${long}\x07\x1b[22t`)
  await write('\x1b]0;short\x07')
  expect(titles).toEqual(['short'.length])
  expect(memoryInUse() - before).toBeLessThan(20 * 2 ** 20)
}, 120_000)

test('no program holds up what runs beside the emulator, by sequences that a few bytes repeat', async () => {
  const { terminal, write, row } = await opened()
  let longest = 0
  let last = performance.now()
  const beside = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 1)
  for (const sequence of ['\x1b[1000S', '\x1b[1000T', '\x1b[1000L', '\x1b[1000M', 'a\x1b[1000b', '\x1b[999I'])
    await write(sequence.repeat(10_000))
  await Bun.sleep(2)
  clearInterval(beside)
  expect(longest).toBeLessThan(1_000)
  // It draws on, and such sequences too.
  await write(`\x1bc${'\n'.repeat(1_000)}\x1b[Hgone\r\nkept\x1b[1S`)
  const { baseY } = terminal.buffer.active
  expect(row(baseY)).toBe('kept')
  await write('\x1b[H\x1b[24MA\x1b[9b')
  expect(row(baseY)).toBe('A'.repeat(10))
}, 120_000)
