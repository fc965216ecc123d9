import { describe, expect, test } from 'bun:test'
import { Cipher } from '../../src/storage/cipher.ts'

const keyOf = (byte: number) => new Uint8Array(32).fill(byte)
const cipher = new Cipher(keyOf(1))

describe('Cipher', () => {
  test.each(['', 'sk_live_abc', 'ünïcödé 漢字 🚢', 'x'.repeat(1_000_000)])(
    'opens what it sealed (%#)',
    (text) => {
      expect(cipher.open(cipher.seal(text, 'api_keys key_1'), 'api_keys key_1')).toBe(text)
    },
  )

  test('what is sealed shows nothing of the text, and never looks the same twice', () => {
    const sealed = cipher.seal('sk_live_abc', 'c')
    expect(sealed.includes('sk_live_abc')).toBe(false)
    expect(cipher.seal('sk_live_abc', 'c').equals(sealed)).toBe(false)
  })

  test('a fingerprint tells two texts apart, for one purpose, and tells nothing without the key', () => {
    const fingerprint = cipher.fingerprint('text', 'a')
    expect(fingerprint).toHaveLength(32)
    expect(cipher.fingerprint('text', 'a').equals(fingerprint)).toBe(true)
    expect(cipher.fingerprint('Text', 'a').equals(fingerprint)).toBe(false)
    expect(cipher.fingerprint('text', 'b').equals(fingerprint)).toBe(false)
    expect(new Cipher(keyOf(2)).fingerprint('text', 'a').equals(fingerprint)).toBe(false)
    expect(new Bun.CryptoHasher('sha256').update('text').digest().equals(fingerprint)).toBe(false)
  })

  test('opens for its context alone, so that rows cannot be swapped', () => {
    const sealed = cipher.seal('secret', 'api_keys key_1')
    expect(() => cipher.open(sealed, 'api_keys key_2')).toThrow()
    expect(() => cipher.open(sealed, '')).toThrow()
  })

  test('opens under its key alone', () => {
    expect(() => new Cipher(keyOf(2)).open(cipher.seal('secret', 'c'), 'c')).toThrow()
  })

  test('any changed, missing or added byte is noticed', () => {
    const sealed = cipher.seal('secret', 'c')
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => cipher.open(changed, 'c')).toThrow()
    }
    for (let length = 0; length < sealed.length; length++)
      expect(() => cipher.open(sealed.subarray(0, length), 'c')).toThrow()
    expect(() => cipher.open(Buffer.concat([sealed, Buffer.of(0)]), 'c')).toThrow()
  })

  test('a key of another length is refused', () => {
    expect(() => new Cipher(new Uint8Array(16))).toThrow(/32 bytes/)
  })
})
