import { describe, expect, test } from 'bun:test'
import { Patterns } from '../../../src/runtime/patterns.ts'

/** Numbers that repeat from run to run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

/** Where patterns stand, by trying each at each place. */
function slowly(patterns: readonly string[], text: string) {
  const spans: { start: number; end: number }[] = []
  for (let start = 0; start < text.length; start += 1) {
    const ends = patterns.filter((one) => text.startsWith(one, start)).map((one) => start + one.length)
    if (ends.length === 0) continue
    const end = Math.max(...ends)
    const last = spans.at(-1)
    if (last && start < last.end) last.end = Math.max(last.end, end)
    else spans.push({ start, end })
  }
  const places = Array.from({ length: text.length }, (_, at) => at)
  const begins = (at: number): boolean =>
    patterns.some((one) => one.length > text.length - at && one.startsWith(text.slice(at)))
  return { spans, beginning: places.find(begins) ?? text.length }
}

describe('patterns', () => {
  test.each(['ab', 'abc', 'aé\u4e2d', 'ab\u{1d11e}'])(
    'of the letters %j are found as by trying each',
    (letters) => {
      const next = numbers(11)
      const units = Array.from({ length: letters.length }, (_, at) => letters[at] ?? '')
      const word = (most: number): string =>
        Array.from({ length: next(most) + 1 }, () => units[next(units.length)]).join('')
      for (let round = 0; round < 400; round += 1) {
        const given = Array.from({ length: next(12) }, () => word(9))
        const patterns = new Patterns(given)
        const kept = given.filter(({ length }) => length >= 4)
        const text = word(60)
        const slow = slowly(kept, text)
        const grown = new Patterns(given.slice(0, 3))
        for (const one of given.slice(3)) grown.add([one])
        for (const found of [patterns, grown]) {
          expect(found.find(text)).toEqual(slow.spans)
          expect(found.beginning(text)).toBe(slow.beginning)
        }
      }
    },
  )

  test('as many as a thousand secrets make are found among each other', () => {
    const next = numbers(5)
    const secret = (): string => Array.from({ length: 24 }, () => 'abcdefghijklmnop'[next(16)]).join('')
    const given = Array.from({ length: 12_000 }, secret)
    const patterns = new Patterns(given)
    expect([...patterns]).toHaveLength(12_000)
    for (const one of given.slice(0, 500)) {
      expect(patterns.find(`user=${one}&x`)).toEqual([{ start: 5, end: 29 }])
      expect(patterns.beginning(`user=${one.slice(0, 9)}`)).toBe(5)
    }
    expect(patterns.find('A LINE WITHOUT ANY OF THEM')).toEqual([])
  })

  test('of fewer than four characters are ignored, and an empty list finds nothing', () => {
    const none = new Patterns(['', 'a', 'abc'])
    expect([...none]).toEqual([])
    expect(none.find('abcabc')).toEqual([])
    expect(none.beginning('ab')).toBe(2)
  })
})
