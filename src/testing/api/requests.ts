import { Elysia, type Static, t } from 'elysia'
import { DeletedCount, Gap, listOf, streamEvent } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { flagSchema, integer, oneOf } from '../../contract/schema.ts'
import { notFound } from '../../errors.ts'
import { afterGap, type SendEvent, wantsEventStream } from '../../http/sse.ts'
import { once } from '../../runtime/once.ts'
import { Pace } from '../../runtime/pace.ts'
import { FaultEffect, OwnClientName } from '../faults/fault.ts'
import { globMatcher } from '../faults/match.ts'
import { addressOf } from '../journal/entry.ts'
import type { NumberedEntry, RequestJournal } from '../journal/journal.ts'
import type { ShownEntry } from '../journal/shown.ts'
import {
  BEFORE,
  BODIES,
  type ListRange,
  type Positions,
  rangeOf,
  streamFields,
  streamItems,
  streamStart,
} from './list-query.ts'
import type { ControlParts } from './parts.ts'
import {
  groupErrors,
  OperationFilter,
  RequestErrors,
  RequestErrorsQuery,
  StatusFilter,
  statusRange,
} from './request-errors.ts'

/** Number of listed items: by default and at most. */
const LIMIT = { default: 100, most: 100_000 }

const Body = t.Nullable(
  t.Object(
    {
      body: t.Unknown({ description: 'The value of JSON, else text; secrets are `***`.' }),
      truncated: t.Boolean({ description: 'Whether it was longer than the 64 KiB that are kept.' }),
    },
    { $id: 'JournalBody' },
  ),
)

/** What a response says, in short. */
const JournalSummary = t.Object(
  {
    error: t.Nullable(t.String()),
    message: t.Nullable(t.String()),
    server_id: t.Nullable(t.String()),
    made: t.Array(t.String()),
  },
  { $id: 'JournalSummary' },
)

/** A fault that applied to a request. */
const AppliedFault = t.Object({ fault_id: t.String(), effect: FaultEffect }, { $id: 'AppliedFault' })

/** What a request may have meant. */
const NearMiss = t.Object(
  {
    kind: oneOf(['field', 'query', 'path', 'method', 'id'], { $id: 'NearMissKind' }),
    at: t.String(),
    message: t.String(),
    suggestions: t.Array(t.String()),
  },
  { $id: 'NearMiss' },
)

/** The fields of an entry besides its bodies. */
const ENTRY_FIELDS = {
  id: t.String({ description: 'The `x-request-id` of the response.' }),
  at: t.String({ format: 'date-time' }),
  method: t.String(),
  path: t.String({ description: 'With its query.' }),
  status: integer(),
  ms: t.Number({ description: 'Until the response; of a stream, until it began.' }),
  operation: t.Nullable(t.String()),
  account_id: t.Nullable(t.String()),
  api_key_id: t.Nullable(t.String()),
  client: t.Nullable(OwnClientName, { description: "Which of berth's own clients sent it." }),
  aborted: t.Boolean({ description: 'Whether the client closed the connection before the response.' }),
  request_headers: t.Record(t.String(), t.String(), {
    description:
      'By their names in lower case. Of credentials only the scheme and the names of cookies are shown.',
  }),
  response_headers: t.Record(t.String(), t.String(), {
    description: 'Without `date` and those that frame the body, which are added when it is sent.',
  }),
  response_type: t.Nullable(t.String()),
  said: t.Nullable(JournalSummary, {
    description:
      'What the response says in short, also without bodies: the code and the message of a failure, the server that it names, and the ids of what was made. Null if it says none of it, or is longer than 16 KiB.',
  }),
  faults: t.Array(AppliedFault, {
    description: 'The faults that applied to it, also those that were removed since.',
  }),
  near_misses: t.Array(NearMiss),
}

export const JournalEntry = t.Object(
  { ...ENTRY_FIELDS, request: t.Optional(Body), response: t.Optional(Body) },
  { $id: 'JournalEntry' },
)

const WholeJournalEntry = t.Object(
  { ...ENTRY_FIELDS, request: Body, response: Body },
  { $id: 'WholeJournalEntry' },
)

/** An event of the stream of requests. */
const RequestStreamEvent = streamEvent('RequestStreamEvent', { request: JournalEntry, gap: Gap })

const RequestsQuery = t.Object(
  {
    method: t.Optional(t.String({ description: 'In any case of letters.' })),
    path: t.Optional(
      t.String({ description: 'The path without its query; `*` stands for anything: `/servers/*`.' }),
    ),
    status: t.Optional(StatusFilter),
    account_id: t.Optional(t.String()),
    operation: t.Optional(OperationFilter),
    own: t.Optional(flagSchema("Only those of berth's own clients, or only those of all others.")),
    fault_id: t.Optional(t.String({ description: 'Only those that this fault applied to.' })),
    near_misses: t.Optional(flagSchema('Only those with near misses.')),
    bodies: BODIES,
    after: t.Optional(
      t.String({
        description: 'Only what came after the request of this id; `start` for all that are kept.',
      }),
    ),
    before: BEFORE,
    ...streamFields(LIMIT),
  },
  { additionalProperties: false },
)
type RequestsQuery = Static<typeof RequestsQuery>

/** The id in place of all requests, when they are forgotten. */
export const ALL_REQUESTS = '*'

/** Serves `/_berth/requests`: requests to the API with their responses. */
export const requestsRoutes = ({
  access,
  services: { clock, journal, changes },
  operations,
  masks,
  stopping,
}: ControlParts) => {
  const reader = once(async () => {
    const [{ shownEntry }, index] = await Promise.all([import('../journal/shown.ts'), operations()])
    return { shownEntry, index }
  })
  /** Which of some entries fit, as they are shown. */
  const openFilter = async (query: RequestsQuery) => {
    const { shownEntry, index } = await reader()
    const matches = filterOf(query)
    const style = { operations: index, known: masks(), bodies: query.bodies !== 'false' }
    return (numbered: NumberedEntry): ShownEntry | null => {
      if (!matches(numbered)) return null
      const shown = shownEntry(numbered.entry, style)
      if (query.operation !== undefined && shown.operation !== query.operation) return null
      return query.near_misses === 'true' && shown.near_misses.length === 0 ? null : shown
    }
  }
  const positions: Positions = {
    one: 'a request that the journal keeps',
    find: (id) => journal.find(id),
    newest: () => journal.last,
  }
  return new Elysia({ prefix: '/_berth/requests' })
    .use(access)
    .get(
      '',
      ({ query, request, stream }): Promise<{ requests: ShownEntry[] }> | Promise<Response> => {
        const opening = openFilter(query)
        if (query.follow !== 'true' && !wantsEventStream(request.headers.get('accept'))) {
          const range = rangeOf(query, positions)
          return opening.then<{ requests: ShownEntry[] }>(async (show) => ({
            requests: await newest(journal, show, range, query.limit ?? LIMIT.default),
          }))
        }
        const starting = streamStart(request, query, positions)
        return Promise.all([starting, opening]).then<Response>(([start]) =>
          stream(
            afterGap(start, (send, gone) =>
              streamRequests(
                { journal, from: start.from, query, openFilter },
                send,
                AbortSignal.any([gone, stopping]),
              ),
            ),
          ),
        )
      },
      operation(
        'control.requests.list',
        {
          access: 'admin',
          summary: 'Requests to the API with their responses, newest first, or a stream of those to come',
          description:
            'Headers are kept, and bodies up to 64 KiB, with secrets masked. If no operation matched, `near_misses` names the nearest ones.',
          events: 'Each request as `request`, with the data of the JSON response.',
          event: RequestStreamEvent,
          resumable: true,
          success: { 200: listOf('requests', JournalEntry) },
        },
        { query: RequestsQuery },
      ),
    )
    .get(
      '/errors',
      async ({ query }) => ({ errors: await groupErrors(journal, await operations(), query) }),
      operation(
        'control.requests.errors',
        {
          access: 'admin',
          summary: 'Failed requests, grouped by operation and code',
          description:
            'Of the requests that the journal keeps: how often each operation failed with which code, when first and last, and the latest of them.',
          success: { 200: listOf('errors', RequestErrors) },
        },
        { query: RequestErrorsQuery },
      ),
    )
    .get(
      '/:requestId',
      async ({ params: { requestId } }) => {
        const { shownEntry, index } = await reader()
        const seq = journal.find(requestId)
        const [numbered] = seq === undefined ? [] : journal.after(seq - 1, 1)
        if (!numbered) throw notFound(`The request ${JSON.stringify(requestId)}`)
        return shownEntry(numbered.entry, { operations: index, known: masks(), bodies: true })
      },
      operation('control.requests.get', {
        access: 'admin',
        summary: 'One request with its response',
        description: 'With headers and bodies. The journal keeps the latest requests only.',
        success: { 200: WholeJournalEntry },
        errors: [404],
      }),
    )
    .delete(
      '',
      () => {
        const deleted = journal.clear(clock.now())
        changes.notify('request', ALL_REQUESTS, null)
        return { deleted }
      },
      operation('control.requests.clear', {
        access: 'admin',
        summary: 'Forget all requests of the journal',
        description: 'Requests that are under way are added to the journal when they end.',
        success: { 200: DeletedCount },
      }),
    )
}

type Show = (numbered: NumberedEntry) => ShownEntry | null

/** Returns the newest entries that match. Other requests are served between slices of the work. */
async function newest(
  journal: RequestJournal,
  show: Show,
  { after, before }: ListRange,
  limit: number,
): Promise<ShownEntry[]> {
  const found: ShownEntry[] = []
  const pace = new Pace()
  for (const numbered of journal.newest(after, before)) {
    const shown = show(numbered)
    if (shown) found.push(shown)
    if (found.length === limit) break
    if (pace.due) await pace.rest()
  }
  return found
}

/** Returns the part of the filter that needs no conversion of an entry. */
function filterOf({
  method,
  path,
  status,
  account_id,
  fault_id,
  own,
}: RequestsQuery): (numbered: NumberedEntry) => boolean {
  const wanted = method?.toUpperCase()
  const matches = path === undefined ? null : globMatcher(path.replace(/\*+/g, '**'))
  const [from, to] = status === undefined ? [0, 1_000] : statusRange(status)
  return ({ entry }) =>
    (wanted === undefined || entry.method === wanted) &&
    entry.status >= from &&
    entry.status <= to &&
    (own === undefined || (entry.client !== null) === (own === 'true')) &&
    (fault_id === undefined || entry.faults.some(({ id }) => id === fault_id)) &&
    (account_id === undefined || entry.caller?.accountId === account_id) &&
    (matches === null || matches(addressOf(entry).path))
}

interface RequestStreamOptions {
  journal: RequestJournal
  from: number
  query: RequestsQuery
  openFilter: (query: RequestsQuery) => Promise<Show>
}

/** Streams requests until `ended` fires or the limit is reached. */
const streamRequests = (
  { journal, from, query, openFilter }: RequestStreamOptions,
  send: SendEvent,
  ended: AbortSignal,
): Promise<void> =>
  streamItems<NumberedEntry>(
    {
      subscribe: (listener) => journal.subscribe(listener),
      after: (seq, most) => journal.after(seq, most),
      async send(numbered) {
        // The secrets may have changed meanwhile.
        const shown = (await openFilter(query))(numbered)
        if (shown !== null) await send('request', shown, shown.id)
        return shown !== null
      },
      from,
      limit: query.limit,
    },
    ended,
  )
