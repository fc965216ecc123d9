import { expect, test } from 'bun:test'
import { TerminalReport } from '../../src/agents/command/report.ts'
import { Masks } from '../../src/runtime/masks.ts'

const report = () => new TerminalReport(new Masks(), () => {})

test('a program is read on at once while what it prints is little and quick to draw', () => {
  const shown = report()
  for (let line = 0; line < 100; line += 1) {
    shown.add('x')
    expect(shown.throttle(0)).toBeUndefined()
  }
})

test('a program whose output was laborious waits before more is taken', async () => {
  await expect(report().throttle(20) ?? 'at once').resolves.toBeUndefined()
})

test('a program that prints more lines in a second than a transcript can take waits', async () => {
  const shown = report()
  expect(shown.throttle(0)).toBeUndefined()
  for (let line = 0; line < 10_000; line += 1) shown.add('x')
  await expect(shown.throttle(0) ?? 'at once').resolves.toBeUndefined()
})
