import { describe, expect, test } from 'bun:test'
import { Masks } from '../../../src/runtime/masks.ts'

const SECRET = 'sk-4f+x/9 "tail"\\z'

function masksOf(...values: string[]): Masks {
  const masks = new Masks()
  masks.add(values)
  return masks
}

describe('a secret is hidden', () => {
  const masks = masksOf(SECRET)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')

  test.each([
    ['as it is', SECRET],
    ['in JSON', JSON.stringify({ key: SECRET })],
    ['in a URL', `https://x/?key=${encodeURIComponent(SECRET)}`],
    [
      'in a URL with lower-case codes',
      encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase()),
    ],
    ['in a form', new URLSearchParams({ key: SECRET }).toString()],
    ['in base64', base64(SECRET)],
    ['in base64 for URLs', Buffer.from(SECRET).toString('base64url')],
    ['in the base64 of a user with a password', `Basic ${base64(`bob:${SECRET}`)}`],
    ['in the base64 of another user', `Basic ${base64(`alice:${SECRET}:x`)}`],
    ['in the base64 of a third', `Basic ${base64(`carol2:${SECRET}-`)}`],
  ])('%s', (_, text) => {
    const masked = masks.mask(text)
    expect(masked).toContain('***')
    for (const part of ['sk-4f', 'tail', base64(SECRET).slice(4, 12)]) expect(masked).not.toContain(part)
  })

  test('line by line where it has several', () => {
    const key = '-----BEGIN KEY-----\nMIIBVgIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n'
    const masked = masksOf(key).mask(`got:\n  MIIBVgIBADANBg\n  kqhkiG9w0BAQEF\nand ${JSON.stringify(key)}`)
    expect(masked).toBe('got:\n  ***\n  ***\nand "***"')
  })

  test('with what overlaps it, whichever begins first', () => {
    expect(masksOf('abcdef', 'defghi').mask('-abcdefghi-')).toBe('-***-')
    expect(masksOf('aaaa').mask('aaaaaaaaa.')).toBe('***.')
  })

  test('but not one of less than four characters', () => {
    expect(masksOf('abc', '').mask('abc abcd')).toBe('abc abcd')
  })

  test('also when a newer value took its place', () => {
    const masks = new Masks()
    masks.update(['old-value', 'other-value'])
    masks.update(['new-value'])
    expect(masks.mask('old-value other-value new-value')).toBe('*** *** ***')
  })

  test('if it was replaced lately; of variables that are set again and again, not all values are kept', () => {
    const masks = masksOf('for-good')
    const kept = (): number => [...masks.patterns].reduce((sum, { length }) => sum + length, 0)
    const values = (round: number): string[] => [
      'constant-value',
      ...[1, 2, 3, 4].map((n) => `${round}-${n}-`.padEnd(60_000, 'x')),
    ]
    let largest = 0
    for (let round = 0; round < 24; round += 1) {
      masks.update(values(round))
      largest = Math.max(largest, kept() / values(round).join('').length)
    }
    // Replaced values are as many as four rounds have, and each is there in some ten forms.
    expect(largest).toBeLessThan(80)
    expect(masks.mask(`for-good constant-value ${values(22)[1]} ${values(23)[1]}`)).toBe('*** *** *** ***')
    expect(masks.mask(`${values(0)[1]}`)).toBe(`${values(0)[1]}`)
  })
})

test('of variables that are set again and again, not all lines are kept', () => {
  const masks = new Masks()
  let most = 0
  for (let round = 0; round < 24; round += 1) {
    masks.update([Array.from({ length: 2_000 }, (_, n) => `${round}.${n}`.padStart(8, '_')).join('\n')])
    most = Math.max(most, [...masks.patterns].length / 2_000)
  }
  // A line of digits is kept as it is, and as base64 writes it: alone, and inside of other text.
  expect(most).toBeLessThan(10 * 5)
  expect(masks.mask('__23.100 __22.100 ___0.100')).toBe('*** *** ___0.100')
})

describe('a secret in pieces', () => {
  const TEXT = `before ${SECRET} between ${SECRET}${SECRET} after sk-4`

  test.each([1, 2, 3, 5, 7, 11, 1000])('of %p characters is hidden as in a whole', (size) => {
    const stream = masksOf(SECRET, 'other').stream()
    let out = ''
    for (let at = 0; at < TEXT.length; at += size) out += stream.push(TEXT.slice(at, at + size))
    out += stream.flush()
    expect(out).toBe('before *** between ****** after ***')
  })

  test('holds back only what a secret begins with', () => {
    const stream = masksOf('hunter-two').stream()
    expect(stream.push('hello hun')).toBe('hello ')
    expect(stream.push('gry')).toBe('hungry')
    expect(stream.holding).toBe(false)
  })

  test('with silence in between shows none of it', () => {
    const stream = masksOf('hunter-two').stream()
    let out = stream.push('key: hunter')
    expect(out).toBe('key: ')
    out += stream.flush()
    expect(out).toBe('key: ***')
    out += stream.push('-tw')
    out += stream.flush()
    out += stream.push('o, done')
    expect(out).toBe('key: ***, done')
  })

  test('that only began like one costs what was held back', () => {
    const stream = masksOf('hunter-two').stream()
    expect(stream.push('hunter') + stream.flush() + stream.push(' gatherer')).toBe('*** gatherer')
  })

  test('of which too little came to tell shows that little alone', () => {
    const stream = masksOf('hunter-two').stream()
    expect(stream.push('hu') + stream.flush() + stream.push('nter-two!')).toBe('hu***!')
  })

  test('covered by another that has ended keeps its rest hidden', () => {
    const stream = masksOf('abcd', 'cdefgh').stream()
    expect(stream.push('-abcd') + stream.push('efgh-')).toBe('-***-')
  })

  test('is hidden in every cut of every text, as in the whole', () => {
    const masks = masksOf('abab', 'babcc', 'ccaa')
    let seed = 7
    const next = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (let round = 0; round < 2000; round += 1) {
      const text = Array.from({ length: 1 + next(30) }, () => 'abc'[next(3)]).join('')
      const stream = masks.stream()
      let out = ''
      for (let at = 0; at < text.length; ) {
        const size = 1 + next(6)
        out += stream.push(text.slice(at, at + size))
        at += size
      }
      out += stream.flush()
      for (const pattern of masks.patterns) expect(out).not.toContain(pattern)
      // At the end alone, more is hidden than in the whole: what began like a secret.
      if (!out.endsWith('***')) expect(out).toBe(masks.mask(text))
    }
  })
})
