/** A source of random bytes: the system's, or one that repeats from run to run. */
export interface Random {
  /** `count` random bytes. */
  bytes(count: number): Uint8Array
}

/** The operating system's generator, fit for keys. */
export const systemRandom: Random = { bytes: (count) => crypto.getRandomValues(new Uint8Array(count)) }

/**
 * Returns SHA-256 in counter mode over a seed: the same seed gives the same bytes, so ids and keys of a test run
 * repeat. The seed reveals the keys.
 *
 * @param purpose separates sequences, so the use of one does not change another
 */
export function seededRandom(seed: number, purpose = ''): Random {
  let counter = 0
  let pool = new Uint8Array(0)
  return {
    bytes(count) {
      while (pool.length < count) {
        const block = new Bun.CryptoHasher('sha256').update(`berth:${seed}:${purpose}:${counter++}`).digest()
        const joined = new Uint8Array(pool.length + block.length)
        joined.set(pool)
        joined.set(block, pool.length)
        pool = joined
      }
      const taken = pool.slice(0, count)
      pool = pool.slice(count)
      return taken
    },
  }
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` characters of 0-9A-Za-z, each equally likely (bytes past the last full turn are redrawn). */
export function base62(random: Random, length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random.bytes(length - text.length)) {
      if (byte < 248) text += BASE62[byte % 62]
    }
  }
  return text
}
