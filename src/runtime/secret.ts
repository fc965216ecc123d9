import { base62, type Random } from './random.ts'

/** Characters of 0-9A-Za-z that hold 256 bits. */
const CHARACTERS = 43

/** Creates a secret of 256 random bits after a prefix that names its kind. */
export const newSecret = (random: Random, prefix = ''): string => `${prefix}${base62(random, CHARACTERS)}`

/**
 * Returns the hash by which a secret is found without being stored. A secret has 256 random bits, so it needs no slow
 * hash.
 */
export const hashOf = (secret: string): Buffer => Bun.CryptoHasher.hash('sha256', secret)

/** Returns the hash of a secret as `hashOf` does, in base64. */
export const hashTextOf = (secret: string): string => Bun.CryptoHasher.hash('sha256', secret, 'base64')

/** Reports whether two texts are equal, in a time that depends only on their length. */
export function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && crypto.timingSafeEqual(a, b)
}
