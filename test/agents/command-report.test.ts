import { expect, test } from 'bun:test'
import { TerminalReport } from '../../src/agents/command/report.ts'
import { Masks } from '../../src/runtime/masks.ts'

const report = () => new TerminalReport(new Masks(), () => {})

test('a program is read on at once while what it prints is little', () => {
  const shown = report()
  for (let line = 0; line < 100; line += 1) {
    shown.add('x')
    expect(shown.throttle()).toBeUndefined()
  }
})

test('a program that prints more lines in a second than a transcript can take waits', async () => {
  const shown = report()
  expect(shown.throttle()).toBeUndefined()
  for (let line = 0; line < 10_000; line += 1) shown.add('x')
  await expect(shown.throttle() ?? 'at once').resolves.toBeUndefined()
})
