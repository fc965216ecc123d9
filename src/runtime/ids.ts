import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** The prefix of an id, which names the kind of thing. */
type IdPrefix =
  | 'acct'
  | 'key'
  | 'srv'
  | 'term'
  | 'exe'
  | 'task'
  | 'bld'
  | 'prj'
  | 'irun'
  | 'dep'
  | 'wh'
  | 'evt'
  | 'dlv'
  | 'flt'
  | 'msg'
  | 'scn'
  | 'req'
  | 'client'
  | 'grant'
  | 'ses'

/** Makes ids: a prefix and a lower-case ULID, for each prefix ascending even within a millisecond. */
export interface Ids {
  /**
   * Returns the next id. Skips ids for which `isTaken` returns true; these occur if the randomness repeats at each
   * start.
   */
  next(prefix: IdPrefix, isTaken?: (id: string) => boolean): string
}

/** Crockford's base 32, in lower case. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Characters for the 48 bits of time. */
const TIME_LENGTH = 10

/** Characters for the 80 random bits. */
const RANDOM_LENGTH = 16

/**
 * Creates ids by the given clock and randomness, as the ULID specification says: 48 bits of time and 80 random bits,
 * incremented while the time has not changed. Not a library's, because the usual one loads a cryptography module that
 * delays a start.
 *
 * @param randomOf returns the randomness of a prefix, so the number of ids of one kind does not change another kind's
 */
export function createIds(clock: Pick<Clock, 'now'>, randomOf: (prefix: IdPrefix) => Random): Ids {
  const series = new Map<IdPrefix, () => string>()
  return {
    next(prefix, isTaken = () => false) {
      const next = series.get(prefix) ?? ulids(clock, randomOf(prefix))
      series.set(prefix, next)
      for (;;) {
        const id = `${prefix}_${next()}`
        if (!isTaken(id)) return id
      }
    },
  }
}

/** Makes ULIDs. Every request takes one, so their characters are written into one buffer. */
function ulids(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let time = -1
  const digits = new Uint8Array(TIME_LENGTH + RANDOM_LENGTH)
  const text = Buffer.alloc(digits.length)
  return () => {
    const now = clock.now()
    let changed = 0
    if (now > time) {
      time = now
      let rest = time
      for (let at = TIME_LENGTH - 1; at >= 0; at -= 1) {
        digits[at] = rest % 32
        rest = Math.floor(rest / 32)
      }
      digits.set(random.bytes(RANDOM_LENGTH), TIME_LENGTH)
    } else {
      changed = countUp(digits)
    }
    // Five bits of each random byte count.
    for (let at = changed; at < digits.length; at += 1) text[at] = ALPHABET.charCodeAt((digits[at] ?? 0) & 31)
    return text.toString('latin1')
  }
}

/**
 * Increments the random part of an id, in base-32 digits; 2^80 ids in a millisecond are enough.
 *
 * @returns the position of the first digit that has changed
 */
function countUp(digits: Uint8Array): number {
  for (let at = digits.length - 1; at > TIME_LENGTH; at -= 1) {
    const digit = ((digits[at] ?? 0) & 31) + 1
    digits[at] = digit & 31
    if (digit < 32) return at
  }
  digits[TIME_LENGTH] = ((digits[TIME_LENGTH] ?? 0) + 1) & 31
  return TIME_LENGTH
}
