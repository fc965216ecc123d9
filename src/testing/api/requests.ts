import { Elysia, type Static, t } from 'elysia'
import type { DescribedOperation } from '../../contract/operation.ts'
import { operation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import { integer, oneOf } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'
import { eventStream, type SendEvent, wantsEventStream } from '../../http/sse.ts'
import type { Masks } from '../../runtime/masks.ts'
import { once } from '../../runtime/once.ts'
import { globMatcher } from '../faults/glob.ts'
import { addressOf } from '../journal/entry.ts'
import type { NumberedEntry, RequestJournal } from '../journal/journal.ts'
import type { ShownEntry } from '../journal/shown.ts'
import type { ControlAccess } from './access.ts'
import { followAll } from './follow.ts'

/** How many are listed where no limit is given, and at most. */
const LIMIT = { default: 100, most: 100_000 }

/** Stands for the position before the first request: a stream then begins with it. */
const START = 'start'

const Body = t.Nullable(
  t.Object({
    body: t.Unknown({ description: 'The value of JSON, else text; secrets are `***`.' }),
    truncated: t.Boolean({ description: 'Whether it was longer than the 64 KiB that are kept.' }),
  }),
)

const JournalEntry = t.Object(
  {
    id: t.String({ description: 'The `x-request-id` of the answer.' }),
    at: t.String({ format: 'date-time' }),
    method: t.String(),
    path: t.String({ description: 'With its query.' }),
    status: integer(),
    ms: t.Number({ description: 'Until there was an answer; of a stream, until it began.' }),
    operation: t.Nullable(t.String()),
    account_id: t.Nullable(t.String()),
    api_key_id: t.Nullable(t.String()),
    aborted: t.Boolean({ description: 'Whether the client had gone before there was an answer.' }),
    request: Body,
    response: Body,
    response_type: t.Nullable(t.String()),
    near_misses: t.Array(
      t.Object({
        kind: oneOf(['field', 'query', 'path', 'method', 'id']),
        at: t.String(),
        message: t.String(),
        suggestions: t.Array(t.String()),
      }),
    ),
  },
  { $id: 'JournalEntry' },
)

const RequestsQuery = t.Object(
  {
    method: t.Optional(t.String({ description: 'In any case of letters.' })),
    path: t.Optional(
      t.String({ description: 'The path without its query; `*` stands for anything: `/servers/*`.' }),
    ),
    status: t.Optional(t.String({ description: 'One status, or a hundred of them, such as `4xx`.' })),
    account_id: t.Optional(t.String()),
    operation: t.Optional(t.String({ description: 'An operation id, such as `exec.run`.' })),
    near_misses: t.Optional(oneOf(['true', 'false'], { description: 'Only those with near misses.' })),
    after: t.Optional(
      t.String({
        description: 'Only what came after the request of this id; `start` for all that are kept.',
      }),
    ),
    limit: t.Optional(
      integer({
        minimum: 1,
        maximum: LIMIT.most,
        description: `At most so many; ${LIMIT.default} where nothing is said, in a stream any number.`,
      }),
    ),
    follow: t.Optional(
      oneOf(['true', 'false'], {
        description: 'A stream of those to come, as `Accept: text/event-stream` asks too.',
      }),
    ),
  },
  { additionalProperties: false },
)
type RequestsQuery = Static<typeof RequestsQuery>

/** What the calls about requests need. */
export interface RequestParts {
  journal: RequestJournal
  operations: () => Promise<OperationIndex<DescribedOperation>>
  /** Hides values that are secret beside what looks like a credential. */
  masks: () => Masks
  /** Fires when berth stops or is reset: streams end. */
  stopping: AbortSignal
}

/** `/_berth/requests`: the requests to the API, with their answers. */
export const requestsRoutes = (
  access: ControlAccess,
  { journal, operations, masks, stopping }: RequestParts,
) => {
  const reader = once(async () => {
    const [{ shownEntry }, index] = await Promise.all([import('../journal/shown.ts'), operations()])
    return { shownEntry, index }
  })
  /** Which of some entries fit, as they are shown. */
  const showing = async (query: RequestsQuery) => {
    const { shownEntry, index } = await reader()
    if (query.operation !== undefined && !index.all.some(({ id }) => id === query.operation)) {
      throw badRequest(
        `"operation" in the query: there is none of the id ${JSON.stringify(query.operation)}.`,
      )
    }
    const fits = filterOf(query)
    const known = masks()
    return (placed: NumberedEntry): ShownEntry | null => {
      if (!fits(placed)) return null
      const shown = shownEntry(placed.entry, index, known)
      if (query.operation !== undefined && shown.operation !== query.operation) return null
      return query.near_misses === 'true' && shown.near_misses.length === 0 ? null : shown
    }
  }
  return new Elysia({ prefix: '/_berth/requests' })
    .use(access)
    .get(
      '',
      ({ query, request }): Promise<{ requests: ShownEntry[] }> | Promise<Response> => {
        const after = query.after === undefined ? undefined : placeOf(journal, query.after)
        const showingThem = showing(query)
        if (query.follow !== 'true' && !wantsEventStream(request.headers.get('accept'))) {
          return showingThem.then<{ requests: ShownEntry[] }>((show) => ({
            requests: newest(journal, show, after ?? 0, query.limit ?? LIMIT.default),
          }))
        }
        const from = after ?? journal.last
        return showingThem.then<Response>(() =>
          eventStream((send, gone) =>
            follow({ journal, from, query, showing }, send, AbortSignal.any([gone, stopping])),
          ),
        )
      },
      operation(
        'control.requests.list',
        {
          access: 'admin',
          summary: 'Requests to the API with their answers, newest first, or a stream of those to come',
          description:
            'Bodies are kept up to 64 KiB, with secrets masked. `near_misses` says what a request nearly was.',
          events: 'Each request as `request`, with the data of the JSON answer.',
          success: { 200: t.Object({ requests: t.Array(JournalEntry) }) },
        },
        { query: RequestsQuery },
      ),
    )
    .delete(
      '',
      () => ({ deleted: journal.clear() }),
      operation('control.requests.clear', {
        access: 'admin',
        summary: 'Forget all requests of the journal',
        description: 'Requests under way are kept when they end.',
        success: { 200: t.Object({ deleted: integer() }) },
      }),
    )
}

function placeOf(journal: RequestJournal, id: string): number {
  if (id === START) return 0
  const seq = journal.find(id)
  if (seq > 0) return seq
  throw badRequest(
    `"after" in the query: expected the id of a request that the journal keeps, got ${JSON.stringify(id)}.`,
  )
}

type Show = (placed: NumberedEntry) => ShownEntry | null

function newest(journal: RequestJournal, show: Show, after: number, limit: number): ShownEntry[] {
  const found: ShownEntry[] = []
  for (const placed of journal.newest(after)) {
    const shown = show(placed)
    if (shown) found.push(shown)
    if (found.length === limit) break
  }
  return found
}

/** What can be told without looking into an entry. */
function filterOf({ method, path, status, account_id }: RequestsQuery): (placed: NumberedEntry) => boolean {
  const wanted = method?.toUpperCase()
  const matches = path === undefined ? null : globMatcher(path.replace(/\*+/g, '**'))
  const [from, to] = status === undefined ? [0, 1_000] : statuses(status)
  return ({ entry }) =>
    (wanted === undefined || entry.method === wanted) &&
    entry.status >= from &&
    entry.status <= to &&
    (account_id === undefined || entry.caller?.accountId === account_id) &&
    (matches === null || matches(addressOf(entry).path))
}

function statuses(status: string): [from: number, to: number] {
  if (!/^[1-5](?:\d\d|xx)$/.test(status)) {
    throw badRequest(
      `"status" in the query: expected a status such as 404, or 4xx for all of its hundred, got ${JSON.stringify(status)}.`,
    )
  }
  const hundred = Number(status[0]) * 100
  return status.endsWith('xx') ? [hundred, hundred + 99] : [Number(status), Number(status)]
}

interface Wanted {
  journal: RequestJournal
  from: number
  query: RequestsQuery
  showing: (query: RequestsQuery) => Promise<Show>
}

/** Sends what is added until `ended`; as many as the limit says, where one is given. */
const follow = (
  { journal, from, query, showing }: Wanted,
  send: SendEvent,
  ended: AbortSignal,
): Promise<void> =>
  followAll<NumberedEntry>(
    {
      subscribe: (listener) => journal.subscribe(listener),
      after: (seq, most) => journal.after(seq, most),
      async tell(placed) {
        // What is secret may be another by now.
        const shown = (await showing(query))(placed)
        if (shown !== null) await send('request', shown)
        return shown !== null
      },
      from,
      limit: query.limit,
    },
    ended,
  )
