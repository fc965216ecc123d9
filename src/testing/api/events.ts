import { and, asc, desc, eq, gt, lt, sql } from 'drizzle-orm'
import { Elysia, type Static, status, t } from 'elysia'
import { Gap, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { oneOf } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'
import { afterGap, type SendEvent, wantsEventStream } from '../../http/sse.ts'
import { accounts } from '../../resources/accounts/table.ts'
import type { EventData } from '../../resources/events/data.ts'
import { EMITTED_NAMES } from '../../resources/events/names.ts'
import type { Outbox } from '../../resources/events/outbox.ts'
import { type EventRow, events } from '../../resources/events/table.ts'
import { SubscribedEvent } from '../../resources/webhooks/model.ts'
import { toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import { checkAccount } from './account.ts'
import {
  BEFORE,
  type ListRange,
  type Positions,
  rangeOf,
  streamFields,
  streamItems,
  streamStart,
} from './list-query.ts'
import type { ControlParts } from './parts.ts'

/** Number of listed items: by default and at most. */
const LIMIT = { default: 1_000, most: 100_000 }

/** The name of an event that is emitted. */
export const EmittedEventName = oneOf([...EMITTED_NAMES], { $id: 'EmittedEventName' })

/** An event as the control API shows it. */
export const EmittedEvent = t.Object(
  {
    id: t.String(),
    event: EmittedEventName,
    account_id: t.String(),
    data: t.Record(t.String(), t.Unknown()),
    request_id: t.Nullable(t.String(), {
      description: 'The request to the API that caused it; null if none did, or if it is not known.',
    }),
    created_at: t.String({ format: 'date-time' }),
  },
  { $id: 'EmittedEvent' },
)
export type EmittedEvent = Static<typeof EmittedEvent>

/** An event of the stream of emitted events. */
const EmittedStreamEvent = t.Union(
  [
    t.Object(
      { event: EmittedEventName, data: EmittedEvent, id: t.Optional(t.String()) },
      { $id: 'EmittedStreamItemEvent' },
    ),
    t.Object({ event: t.Literal('gap'), data: Gap }, { $id: 'EmittedStreamGapEvent' }),
  ],
  { $id: 'EmittedStreamEvent', description: 'An event of a stream: its name, and its data as parsed JSON.' },
)

const EventsQuery = t.Object(
  {
    event: t.Optional(EmittedEventName),
    account_id: t.Optional(t.String({ description: 'Those of one account.' })),
    after: t.Optional(
      t.String({ description: 'Only what came after the event of this id; `start` for all there are.' }),
    ),
    before: BEFORE,
    ...streamFields(LIMIT),
  },
  { additionalProperties: false },
)
type EventsQuery = Static<typeof EventsQuery>

/** Fields of an event that berth sets itself. */
const OWN_FIELDS = ['event', 'created_at']

const EventCreate = t.Object(
  {
    event: SubscribedEvent,
    data: t.Optional(
      t.Record(t.String(), t.Unknown(), {
        // For documents; the route checks it.
        propertyNames: { not: { enum: OWN_FIELDS } },
        description: "What it says; the documents' example where it is left out.",
      }),
    ),
    account_id: t.Optional(
      t.String({ description: 'The account that it is for; the first where none is named.' }),
    ),
  },
  { $id: 'EventCreate', additionalProperties: false },
)

/** `/_berth/events`: all that was emitted, and synthetic events. */
export const eventsRoutes = ({ access, services: { queries, outbox }, stopping }: ControlParts) => {
  const positions = positionsOf(queries)
  return new Elysia({ prefix: '/_berth/events' })
    .use(access)
    .get(
      '',
      ({ query, request, stream }): { events: EmittedEvent[] } | Promise<Response> => {
        if (query.follow !== 'true' && !wantsEventStream(request.headers.get('accept'))) {
          return { events: listed(queries, query, rangeOf(query, positions)) }
        }
        return streamStart(request, query, positions).then<Response>((start) =>
          stream(
            afterGap(start, (send, gone) =>
              streamEvents(queries, outbox, query, start.from, send, AbortSignal.any([gone, stopping])),
            ),
          ),
        )
      },
      operation(
        'control.events.list',
        {
          access: 'admin',
          summary: 'Emitted events, newest first, or a stream of those to come',
          description:
            'Also events that no webhook has subscribed to, and `webhook.disabled`, to which none can.',
          events: 'Each event as it is emitted, under its own name, with the data of the JSON response.',
          event: EmittedStreamEvent,
          resumable: true,
          success: { 200: listOf('events', EmittedEvent) },
        },
        { query: EventsQuery },
      ),
    )
    .post(
      '',
      async ({ body: { event, data, account_id } }) => {
        for (const field of OWN_FIELDS) {
          if (data && field in data) throw badRequest(`"data.${field}" in the body: berth sets it itself.`)
        }
        const accountId = accountOf(queries, account_id)
        // The documented example has the fields that a receiver expects.
        const content = data ?? (await import('../../resources/events/data.ts')).exampleOf(event)
        return status(201, shownEvent(outbox.emit(accountId, event, content as EventData[typeof event])))
      },
      operation(
        'control.events.emit',
        {
          access: 'admin',
          summary: 'Emit a synthetic event',
          description:
            'Sends the event to webhooks like any other. Without `data` berth makes up data of the right shape.',
          success: { 201: EmittedEvent },
        },
        { body: EventCreate },
      ),
    )
}

/** Converts a row to the control API's event. */
export const shownEvent = ({ id, event, accountId, data, requestId, createdAt }: EventRow): EmittedEvent => ({
  id,
  event,
  account_id: accountId,
  data,
  request_id: requestId,
  created_at: toIso(createdAt),
})

const matching = ({ event, account_id }: EventsQuery, { after, before }: ListRange) =>
  and(
    event === undefined ? undefined : eq(events.event, event),
    account_id === undefined ? undefined : eq(events.accountId, account_id),
    after === undefined ? undefined : gt(events.seq, after),
    before === undefined ? undefined : lt(events.seq, before),
  )

const listed = (queries: Queries, query: EventsQuery, range: ListRange) =>
  queries
    .select()
    .from(events)
    .where(matching(query, range))
    .orderBy(desc(events.seq))
    .limit(query.limit ?? LIMIT.default)
    .all()
    .map(shownEvent)

const positionsOf = (queries: Queries): Positions => ({
  one: 'an event',
  find: (id) => queries.select({ seq: events.seq }).from(events).where(eq(events.id, id)).get()?.seq,
  newest: () =>
    queries.select({ seq: events.seq }).from(events).orderBy(desc(events.seq)).limit(1).get()?.seq ?? 0,
})

/** Returns the account that is named, or the first. */
function accountOf(queries: Queries, id: string | undefined): string {
  checkAccount(queries, id, '"account_id" in the body')
  if (id !== undefined) return id
  const first = queries.select({ id: accounts.id }).from(accounts).orderBy(sql`rowid`).limit(1).get()
  if (first) return first.id
  throw new Error('there is no account at all')
}

/** Streams events after a position until `ended` fires or the limit is reached. */
const streamEvents = (
  queries: Queries,
  outbox: Outbox,
  query: EventsQuery,
  from: number,
  send: SendEvent,
  ended: AbortSignal,
): Promise<void> =>
  streamItems<EventRow>(
    {
      subscribe: (listener) => outbox.subscribe(listener),
      after: (seq, most) =>
        queries
          .select()
          .from(events)
          .where(matching(query, { after: seq, before: undefined }))
          .orderBy(asc(events.seq))
          .limit(most)
          .all(),
      async send(row) {
        await send(row.event, shownEvent(row), row.id)
        return true
      },
      from,
      limit: query.limit,
    },
    ended,
  )
