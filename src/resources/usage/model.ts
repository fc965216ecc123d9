import { type Static, t } from 'elysia'
import { ErrorBody, streamEvent } from '../../contract/model.ts'
import { flagSchema, integer } from '../../contract/schema.ts'
import { GapSignal, ReadySignal } from '../changes/signals.ts'
import type { ChangeMessage, StreamSignal } from '../changes/stream.ts'
import { ServerStatus } from '../servers/model.ts'

const bytes = (description: string) => integer({ minimum: 0, description })

/** What a server uses now, and its limits. */
export const ServerUsage = t.Object(
  {
    server_id: t.String(),
    status: ServerStatus,
    cpu_percent: t.Number({ description: 'Use of its processors lately; 100 is all that its size has.' }),
    cpus: t.Number({ description: 'Processors that its size has.' }),
    memory_bytes: bytes('Memory in use.'),
    memory_limit_bytes: integer(),
    storage_bytes: bytes('What the workspace takes on disk.'),
    storage_limit_bytes: integer(),
    processes: integer({ minimum: 0, description: 'Processes and threads.' }),
    processes_limit: integer(),
    credits_used: t.Number({ description: 'Credits that it has used since it was created.' }),
    last_used_at: t.Nullable(t.String({ format: 'date-time' }), {
      description:
        'Last call, command, terminal, task, build or request to an app, to the minute; null if there was none.',
    }),
    measured_at: t.String({
      format: 'date-time',
      description: 'When the figures were taken: in the past while it is unreachable.',
    }),
    unreachable: t.Nullable(t.String(), {
      description:
        'Why a server that runs cannot be measured now, a sentence; its use is the last that is known, or that at its creation. Null otherwise.',
    }),
  },
  { $id: 'ServerUsage', additionalProperties: true },
)
export type ServerUsage = Static<typeof ServerUsage>

/** A message of the stream of what servers use. */
export type UsageMessage = (ChangeMessage<'usage'> & { readonly value: ServerUsage | null }) | StreamSignal

/** An event of the stream of what servers use. */
export const UsageStreamEvent = streamEvent('UsageStreamEvent', {
  ready: ReadySignal,
  usage: t.Object(
    {
      type: t.Literal('usage'),
      id: t.String({ description: 'Of the server.' }),
      value: t.Nullable(ServerUsage),
    },
    { $id: 'UsageMessage' },
  ),
  gap: GapSignal,
  error: ErrorBody,
})

/** The usage of a single server, with its open ports. */
export const SingleServerUsage = t.Object(
  {
    ...ServerUsage.properties,
    ports: t.Array(integer(), { description: 'TCP ports that its programs listen on.' }),
  },
  { $id: 'SingleServerUsage', additionalProperties: true },
)
export type SingleServerUsage = Static<typeof SingleServerUsage>

const credits = (description: string) => t.Number({ minimum: 0, description })

/** The credits that a server used on a day. */
const ServerDay = t.Object(
  {
    server_id: t.String(),
    task: t.Nullable(t.String(), { description: 'Label of the server; null if it was deleted.' }),
    credits: credits('All that it used.'),
    running: credits('For its running time.'),
    tasks: credits('For tasks.'),
    builds: credits('For builds.'),
  },
  { $id: 'ServerDay', additionalProperties: true },
)

/** The credits that an account used on a day. */
const UsageDay = t.Object(
  {
    day: t.String({ description: 'In UTC, such as 2030-01-31.' }),
    credits: credits('All that was used.'),
    servers: t.Array(ServerDay, { description: 'Those that used any, the most first.' }),
  },
  { $id: 'UsageDay', additionalProperties: true },
)

/** The credits of an account: of this month against its budget, and by day. */
export const AccountUsage = t.Object(
  {
    month: t.String({ description: 'The calendar month (UTC) that the budget is for.' }),
    month_ends_at: t.String({ format: 'date-time' }),
    credits_used: credits('Of this month.'),
    budget_cap: credits('Credits a month.'),
    credits_remaining: credits('Until the cap.'),
    credits_unattributed: credits('Of `credits_used`, what is not known by day.'),
    known_since: t.String({
      description: 'The first day that is known; earlier use is known by month only.',
    }),
    days: t.Array(UsageDay, { description: 'The oldest first, today the last.' }),
  },
  { $id: 'AccountUsage', additionalProperties: true },
)
export type AccountUsage = Static<typeof AccountUsage>

/** How long a measurement may take. */
export const MeasureQuery = t.Object(
  {
    quick: t.Optional(
      flagSchema(
        'Respond at once. `cpu_percent` of a server that nobody has measured within 30 s is then its mean since the last measurement, or 0.',
      ),
    ),
  },
  { additionalProperties: true },
)

/** How far back to go. */
export const UsageQuery = t.Object(
  {
    days: t.Optional(integer({ minimum: 1, maximum: 400, description: 'Days up to today; 30 by default.' })),
  },
  { additionalProperties: true },
)
