import type { Random } from '../../runtime/random.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** How long after each failed attempt the next one comes, at the latest: 8 attempts in all. */
export const RETRY_WAITS_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
]

/** The share of a wait by which it may be shorter. */
const JITTER = 0.1

/**
 * The wait before the next attempt, up to a tenth shorter than its entry in the list, so that what
 * failed together does not come back together.
 *
 * @param attempts how many have been made
 * @returns milliseconds, or null where the last one was made
 */
export function retryWait(attempts: number, random: Random): number | null {
  const wait = RETRY_WAITS_MS[attempts - 1]
  if (wait === undefined) return null
  const [high = 0, low = 0] = random.bytes(2)
  return Math.round(wait * (1 - (JITTER * (high * 256 + low)) / 65_535))
}
