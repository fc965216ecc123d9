import { afterEach, expect, test } from 'bun:test'
import { Terminal } from '@xterm/headless'
import { HostedEmulator } from '../../../src/compute/emulators/hosted-emulator.ts'
import type { EmulatorRequest, WriteResult } from '../../../src/compute/emulators/protocol.ts'
import type { ScreenText } from '../../../src/compute/emulators/text.ts'
import { coreOf } from '../../../src/runtime/emulator-core.ts'

const SIZE = { columns: 40, rows: 5, scrollback: 100 }

/** The sequences of which the emulator is made to fail, by the method that carries them out. */
const handlers = Object.getPrototypeOf(coreOf(new Terminal({ allowProposedApi: true }))._inputHandler)
const originals = { setCursorStyle: handlers.setCursorStyle, bell: handlers.bell, print: handlers.print }
afterEach(() => Object.assign(handlers, originals))

function fails(method: keyof typeof originals, isNow: () => boolean = () => true): void {
  handlers[method] = function (this: unknown, ...parameters: unknown[]) {
    if (isNow()) throw new TypeError('a fault of the emulator')
    return originals[method].apply(this, parameters)
  }
}

function opened(followsRows = false) {
  const faults: unknown[] = []
  const emulator = new HostedEmulator(SIZE, followsRows, {
    answered: () => {},
    failed: (error) => faults.push(error),
  })
  const ask = <Result>(request: EmulatorRequest) =>
    new Promise<Result>((resolve) => emulator.handle(request, (result) => resolve(result as Result)))
  return {
    faults,
    write: (text: string) => ask<WriteResult>({ id: 1, kind: 'write', data: new TextEncoder().encode(text) }),
    read: () => ask<ScreenText>({ id: 1, kind: 'read', lines: 100 }),
    resize: (columns: number) => ask({ id: 1, kind: 'resize', size: { ...SIZE, columns } }),
    watch: (pattern: string) => ask({ id: 1, kind: 'watch', watch: 1, pattern, onlyNew: true }),
  }
}

test('an emulator that fails keeps its screen, scrollback, title and modes, and draws on after the sequence', async () => {
  const { write, read, faults } = opened()
  await write(`\x1b]0;title\x07\x1b[?1h${Array.from({ length: 20 }, (_, n) => `line ${n}\r\n`).join('')}`)
  const before = await read()
  fails('setCursorStyle')
  const result = await write('precious\r\n\x1b[3 qafter')
  expect(faults).not.toBeEmpty()
  const { rows, scrollback, title } = await read()
  expect(rows).toEqual(['line 17', 'line 18', 'line 19', 'precious', 'after'])
  expect(scrollback).toEqual([...before.scrollback, 'line 16'])
  expect(title).toBe('title')
  expect(result.modes.cursorKeys).toBe(true)
})

test('an emulator that fails at each turn is replaced each time, and shows what it can', async () => {
  const { write, read, faults } = opened()
  fails('setCursorStyle')
  await write(Array.from({ length: 30 }, (_, n) => `${n}\x1b[3 q `).join(''))
  expect(faults.length).toBeGreaterThanOrEqual(30)
  expect((await read()).rows.join('')).toStartWith('0 1 2 3 4 5 6')
})

test('an emulator that fails at what is kept too begins with an empty screen, and goes on', async () => {
  const { write, read } = opened()
  await write('one two three')
  let failures = 0
  fails('print', () => failures++ < 2)
  await write('lost')
  await write('\r\nnext')
  expect((await read()).rows).toContain('next')
})

test('a wait for a text goes on when the emulator has failed, and the rows that leave are reported once', async () => {
  const { write, watch } = opened(true)
  await write('one\r\ntwo\r\n')
  await watch('found')
  fails('bell')
  const { rowEvents, matches } = await write('\x07three\r\nfour\r\nfive\r\nsix\r\nfound')
  expect(matches).toEqual([{ watch: 1, text: 'found' }])
  expect(rowEvents.flatMap((event) => (event.kind === 'left' ? event.text : []))).toEqual(['one', 'two'])
})

test('lines are wrapped anew when a terminal becomes narrower, and cut where that would hold up all others', async () => {
  const { write, read, resize } = opened()
  await write(`${'a'.repeat(30)}\r\nend`)
  await resize(20)
  expect((await read()).rows).toEqual(['a'.repeat(20), 'a'.repeat(10), 'end', '', ''])
  await resize(5)
  expect((await read()).rows).toEqual(['aaaaa', 'aaaaa', 'end', '', ''])
  const wide = opened()
  await wide.resize(501)
  await wide.write(`${'b'.repeat(501)}\r\nend`)
  await wide.resize(100)
  expect((await wide.read()).rows).toEqual(['b'.repeat(100), 'end', '', '', ''])
})
