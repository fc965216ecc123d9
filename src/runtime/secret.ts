import { base62, type Random } from './random.ts'

/** Characters of 0-9A-Za-z that hold 256 bits. */
const CHARACTERS = 43

/** A secret of 256 random bits behind a prefix that says what it is. */
export const newSecret = (random: Random, prefix = ''): string => `${prefix}${base62(random, CHARACTERS)}`

/** What a secret is found by, without being kept itself: it holds 256 random bits, which need no slow hash. */
export const hashOf = (secret: string): Buffer => new Bun.CryptoHasher('sha256').update(secret).digest()

/** Whether two texts are the same; the time it takes tells nothing of either but its length. */
export function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && crypto.timingSafeEqual(a, b)
}
