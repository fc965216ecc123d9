import type { Random } from '../../runtime/random.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The longest wait after each failed attempt. There are 8 attempts in total. */
export const RETRY_WAITS_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
]

/** The share of a wait that is random. */
const JITTER = 0.1

/**
 * Returns the wait before the next attempt. It is up to a tenth shorter than its entry in the list, so attempts that
 * failed together are not repeated together.
 *
 * @param attempts the number of attempts so far
 * @returns milliseconds, or null after the last attempt
 */
export function retryWait(attempts: number, random: Random): number | null {
  const wait = RETRY_WAITS_MS[attempts - 1]
  if (wait === undefined) return null
  const [high = 0, low = 0] = random.bytes(2)
  return Math.round(wait * (1 - (JITTER * (high * 256 + low)) / 65_535))
}
