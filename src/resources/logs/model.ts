import { type Static, t } from 'elysia'
import { integer } from '../../contract/schema.ts'

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
      description:
        'Only lines since then: a time (RFC 3339), or how long ago it was by the clock of the instance, such as `10m`.',
    }),
  ),
})
export type LogQuery = Static<typeof LogQuery>

/** A line of a log. */
const LogLine = t.Object(
  {
    seq: integer({ minimum: 1, description: 'Counts the lines of the log.' }),
    at: t.String({ format: 'date-time' }),
    source: t.String({
      description: 'What printed it: a phase such as fetch, install or implement, the app, or berth itself.',
    }),
    stream: t.Optional(t.String({ description: 'stdout or stderr.' })),
    phase: t.Optional(t.String({ description: 'Only where the line says that a bring-up has come to it.' })),
    run: t.Optional(t.String({ description: 'Its `init_run_id`.' })),
    text: t.String(),
  },
  { $id: 'LogLine', additionalProperties: true },
)

/** Lines of a log, oldest first. */
export const LogLines = t.Array(LogLine)
export type LogLines = Static<typeof LogLines>
