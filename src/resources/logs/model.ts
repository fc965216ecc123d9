import { type Static, t } from 'elysia'
import { ErrorBody, Gap, streamEvent } from '../../contract/model.ts'
import { integer } from '../../contract/schema.ts'
import type { LogSelection } from '../../hosting/app.ts'
import { DURATION_UNITS, parseDuration } from '../../runtime/duration.ts'

/** Matches a duration, or a time with its zone (RFC 3339, section 5.6). */
const SINCE = `^(?:\\d{1,8}(?:\\.\\d{1,9})?(?:${DURATION_UNITS})?|\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])[Tt ](?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d))$`

/** The query of a log. */
export const LogQuery = t.Object({
  tail: t.Optional(
    integer({
      minimum: 0,
      maximum: 10_000,
      description: 'Lines of what is there; 200 by default, all with `since`.',
    }),
  ),
  since: t.Optional(
    t.String({
      pattern: SINCE,
      title: 'a time such as 2026-01-31T12:00:00Z, or a duration such as 10m or 2h',
      description: 'Only lines since then: a time (RFC 3339), or a duration before now, such as `10m`.',
    }),
  ),
})

/** The query of the log of an app, which may have workers. */
export const AppLogQuery = t.Object({
  ...LogQuery.properties,
  worker: t.Optional(t.String({ minLength: 1, description: 'Only lines of the worker of this name.' })),
})
export type AppLogQuery = Static<typeof AppLogQuery>

/** A line of a log. */
const LogLine = t.Object(
  {
    seq: integer({ minimum: 1, description: 'Counts the lines of the log.' }),
    at: t.String({ format: 'date-time' }),
    source: t.String({
      description:
        'What printed it: a phase such as fetch, install or implement, the app, a worker, or berth itself.',
    }),
    worker: t.Optional(t.String({ description: 'The name of the worker that printed it.' })),
    stream: t.Optional(t.String({ description: 'stdout or stderr.' })),
    phase: t.Optional(t.String({ description: 'Only where the line says that a bring-up has come to it.' })),
    run: t.Optional(t.String({ description: 'Its `init_run_id`.' })),
    text: t.String(),
  },
  { $id: 'LogLine', additionalProperties: true },
)

/** Lines of a log, oldest first. */
const Lines = t.Array(LogLine)
export type LogLines = Static<typeof Lines>

/** The response with lines of a log. */
export const LogBody = t.Object({ logs: Lines }, { $id: 'LogLines', additionalProperties: true })

/** An event of a log that is followed. */
export const LogStreamEvent = streamEvent('LogEvent', {
  line: LogLine,
  dropped: t.Object(
    { lines: integer({ description: 'Lines that the reader was too slow for.' }) },
    { $id: 'DroppedLines' },
  ),
  gap: Gap,
  error: ErrorBody,
})

/** Default number of lines of a log. */
const DEFAULT_TAIL = 200

/** Most lines that a log returns at once. @bound client */
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
