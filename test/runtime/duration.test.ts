import { expect, test } from 'bun:test'
import { parseDuration } from '../../src/runtime/duration.ts'

test.each([
  ['500ms', 500],
  ['10s', 10_000],
  ['15m', 900_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
  ['1.5h', 5_400_000],
  ['90', 90_000],
  ['0', 0],
  [' 3s ', 3_000],
])('%j is a duration', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', 's', '-1s', '1 s', '1w', '1s2m', 'soon', 'Infinity', '1e3s'])('%j is none', (text) => {
  expect(parseDuration(text)).toBeNull()
})
