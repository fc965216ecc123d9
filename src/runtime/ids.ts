import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** What an id can name; the prefix says it to whoever reads the id. */
export type IdPrefix =
  | 'acct'
  | 'key'
  | 'srv'
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
   * The next id. With `isTaken` those are passed over that exist already, which happens where the
   * randomness repeats from start to start.
   */
  next(prefix: IdPrefix, isTaken?: (id: string) => boolean): string
}

/** Crockford's base 32, in lower case. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** Characters for the 80 random bits. */
const RANDOM_LENGTH = 16

/**
 * Ids by the given clock and randomness, after the ULID specification: 48 bits of time, 80 random
 * ones, of which the last is counted up where the time has not moved on. Ours, since the usual
 * library loads a cryptography module that a start would wait for.
 *
 * @param randomOf the randomness of each prefix: how many ids of one kind are made changes no other
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
  let time32 = ''
  let digits: number[] = []
  return () => {
    const now = clock.now()
    if (now > time) {
      time = now
      time32 = base32(now, 10)
      digits = Array.from(random.bytes(RANDOM_LENGTH), (byte) => byte & 31)
    } else {
      countUp(digits)
    }
    return `${time32}${digits.map((digit) => ALPHABET[digit]).join('')}`
  }
}

/** A number as `length` characters, most significant first. */
function base32(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text
  return text
}

/** Adds one to a number of base-32 digits; 2^80 ids in a millisecond are more than anybody asks for. */
function countUp(digits: number[]): void {
  for (let at = digits.length - 1; at >= 0; at -= 1) {
    const digit = (digits[at] ?? 0) + 1
    digits[at] = digit & 31
    if (digit < 32) return
  }
}
