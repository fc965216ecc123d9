import type { LogSelection } from '../../hosting/app-runtime/log/entry.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { AppLogQuery } from './model.ts'

/** Default number of lines of a log. */
const DEFAULT_TAIL = 200

/** Most lines that a log returns at once. */
export const MAX_TAIL = 10_000

/**
 * Returns which lines of a log a query wants, whose shape has been checked.
 *
 * @param now milliseconds since 1970, by the instance's clock
 */
export function logSelection({ tail, since, worker }: AppLogQuery, now: number): LogSelection {
  if (since === undefined) return { tail: tail ?? DEFAULT_TAIL, worker }
  const ago = parseDuration(since)
  const from = ago === null ? Date.parse(since) : now - ago
  return { tail: tail ?? MAX_TAIL, since: Math.max(0, from), worker }
}
