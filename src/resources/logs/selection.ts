import { badRequest } from '../../errors.ts'
import type { LogSelection } from '../../hosting/app-runtime/log/entry.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { LogQuery } from './model.ts'

/** Default number of lines of a log. */
const DEFAULT_TAIL = 200

/** Most lines that a log returns at once. */
export const MAX_TAIL = 10_000

/** Matches a time with its zone (RFC 3339, section 5.6). */
const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

/**
 * Returns which lines of a log a query wants.
 *
 * @param now milliseconds since 1970, by the instance's clock
 * @throws BerthError 400 for a `since` that is neither a time nor a duration
 */
export function logSelection({ tail, since }: LogQuery, now: number): LogSelection {
  if (since === undefined) return { tail: tail ?? DEFAULT_TAIL }
  const ago = parseDuration(since)
  const from = ago === null ? (TIME.test(since) ? Date.parse(since) : Number.NaN) : now - ago
  // Beyond the years that a text of a time has.
  if (Number.isNaN(from) || Math.abs(from) > 8.64e15) {
    throw badRequest(
      '"since" in the query: expected a time such as 2026-01-31T12:00:00Z, or a duration such as 10m or 2h.',
    )
  }
  return { tail: tail ?? MAX_TAIL, since: Math.max(0, from) }
}
