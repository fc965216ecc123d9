import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** The prefix of an id, which names the kind of thing. */
export type IdPrefix =
  | 'acct'
  | 'key'
  | 'srv'
  | 'term'
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

function ulids(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let time = -1
  let digits: number[] = []
  /** All characters except the last, which usually is the only one that changes. */
  let head = ''
  return () => {
    const now = clock.now()
    const isLater = now > time
    if (isLater) {
      time = now
      digits = Array.from(random.bytes(RANDOM_LENGTH), (byte) => byte & 31)
    } else {
      countUp(digits)
    }
    const last = digits.at(-1) ?? 0
    if (isLater || last === 0) {
      head = base32(time, 10)
      for (const digit of digits.slice(0, -1)) head += ALPHABET[digit]
    }
    return head + ALPHABET[last]
  }
}

/** Returns a number as `length` characters, most significant first. */
function base32(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text
  return text
}

/** Increments a number in base-32 digits; 2^80 ids in a millisecond are enough. */
function countUp(digits: number[]): void {
  for (let at = digits.length - 1; at >= 0; at -= 1) {
    const digit = (digits[at] ?? 0) + 1
    digits[at] = digit & 31
    if (digit < 32) return
  }
}
