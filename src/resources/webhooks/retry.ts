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

/** The statuses of a receiver that asks for a pause by `Retry-After`, and the limits of the pause. */
const ASKS_FOR_PAUSE: readonly (number | null)[] = [429, 503]
const LEAST_PAUSE_MS = SECOND
const MOST_PAUSE_MS = HOUR

/**
 * Returns the wait that a receiver asks for with a failed attempt (RFC 9110, 10.2.3): 1 s to 1 h.
 *
 * @param retryAfter the header `Retry-After`
 * @param now milliseconds since 1970, for a date in the header
 * @returns milliseconds, or null if it asks for none
 */
export function requestedWait(
  status: number | null,
  retryAfter: string | undefined,
  now: number,
): number | null {
  if (retryAfter === undefined || !ASKS_FOR_PAUSE.includes(status)) return null
  const wait = pauseOf(retryAfter.trim(), now)
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, LEAST_PAUSE_MS), MOST_PAUSE_MS)
}

/** Returns the pause that a value means in milliseconds: seconds, or an HTTP date. NaN for anything else. */
function pauseOf(value: string, now: number): number {
  if (/^\d+$/.test(value)) return Number(value) * SECOND
  if (!HTTP_DATE.test(value)) return Number.NaN
  // The form of C's asctime names no zone. All forms are in GMT.
  return Date.parse(value.endsWith('GMT') ? value : `${value} GMT`) - now
}

/** Matches the three forms of a date in HTTP (RFC 9110, 5.6.7). */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})$/

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
