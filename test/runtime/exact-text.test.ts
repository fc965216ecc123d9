import { expect, test } from 'bun:test'
import { firstCharacters, lastCharacters } from '../../src/runtime/characters.ts'
import { ExactDecoder, exactBytes, exactText } from '../../src/runtime/exact-text.ts'

/** Returns bytes of which many are parts of UTF-8, by a generator that always gives the same. */
function someBytes(seed: number): Uint8Array {
  const parts = [
    0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xa4, 0xe0, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0x92, 0xf5,
  ]
  let state = seed
  return Uint8Array.from({ length: 40 }, () => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    return parts[(state >> 16) % parts.length] ?? 0
  })
}

test('text holds any bytes exactly, whole and in pieces, and is ordinary text where they are UTF-8', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const bytes = someBytes(seed)
    const text = exactText(bytes)
    expect([...exactBytes(text)]).toEqual([...bytes])
    expect(text.replaceAll(/[\udc80-\udcff]+/gu, '\0').isWellFormed()).toBe(true)
    const decoder = new ExactDecoder()
    const pieces = [...bytes].map((byte) => decoder.push(Uint8Array.of(byte)))
    expect(pieces.join('') + decoder.end()).toBe(text)
  }
  expect(exactText(Buffer.from('\ufeffä€💀'))).toBe('\ufeffä€💀')
})

test('a cut ends before a character that it would split, and begins after one', () => {
  expect([0, 1, 2, 3, 4, 9].map((most) => firstCharacters('a💀b', most))).toEqual([
    '',
    'a',
    'a',
    'a💀',
    'a💀b',
    'a💀b',
  ])
  expect([0, 1, 2, 3, 4, 9].map((most) => lastCharacters('a💀b', most))).toEqual([
    '',
    'b',
    'b',
    '💀b',
    'a💀b',
    'a💀b',
  ])
})
