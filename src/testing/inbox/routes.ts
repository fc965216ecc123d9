import { Elysia, t } from 'elysia'
import { Gap, listOf, streamEvent } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { flagSchema, integer } from '../../contract/schema.ts'
import { afterGap, wantsEventStream } from '../../http/sse.ts'
import { BEFORE, type Positions, rangeOf, streamItems, streamStart } from '../api/list-query.ts'
import type { ControlParts } from '../api/parts.ts'
import { InboxEntry, InboxName, InboxResponse, InboxSummary, toEntry } from './model.ts'
import { INBOX_LIMITS } from './store.ts'

/** Entries in one read of a stream. Each may be large. */
const BATCH_SIZE = 16

const InboxParams = t.Object({ name: InboxName })

const InboxQuery = t.Object(
  {
    after: t.Optional(
      t.String({ description: 'Only what came after the entry of this id; `start` for all there are.' }),
    ),
    before: BEFORE,
    limit: t.Optional(integer({ minimum: 1, maximum: INBOX_LIMITS.entries })),
    follow: t.Optional(flagSchema()),
  },
  { additionalProperties: false },
)

const Received = t.Object({ id: t.String({ description: 'Of the entry.' }) }, { $id: 'ReceivedEntry' })

/** An event of the stream of an inbox. */
const InboxStreamEvent = streamEvent('InboxStreamEvent', { message: InboxEntry, gap: Gap })

const RemovedCount = t.Object(
  { removed: integer({ description: 'How many entries were removed.' }) },
  { $id: 'RemovedCount' },
)

/** Serves `/_berth/inbox`: receivers for webhooks. Using the name of an inbox creates it. */
export function inboxRoutes({ access, services, inbox: store, guard, stopping }: ControlParts) {
  const { queries, cipher, changes } = services
  const positions: Positions = {
    one: 'an entry',
    find: (id) => store.position(id),
    newest: () => store.newest(),
  }
  return new Elysia({ prefix: '/_berth/inbox' })
    .use(access)
    .post(
      '/:name',
      async ({ params: { name }, query, request }) => {
        const [{ receive }, { listenSecret }] = await Promise.all([
          import('./receive.ts'),
          import('../../resources/webhooks/signature.ts'),
        ])
        const verification = { queries, cipher, listenSecret: listenSecret(guard.adminToken) }
        return receive(name, request, query, { store, verification, stopping })
      },
      {
        visitor: true,
        ...operation(
          'control.inbox.receive',
          {
            access: 'public',
            anyQuery: true,
            summary: 'Post to an inbox',
            description: 'Accepts any body, and keeps any query.',
            success: { 200: Received },
            errors: [400, 413],
          },
          { query: InboxResponse, params: InboxParams },
        ),
      },
    )
    .get(
      '',
      () => ({ inboxes: store.list() }),
      operation('control.inbox.list', {
        access: 'admin',
        summary: 'The inboxes that have got something, the latest first',
        description: 'An inbox exists as soon as something is sent to its name.',
        success: { 200: listOf('inboxes', InboxSummary) },
      }),
    )
    .delete(
      '',
      () => ({ removed: store.clear() }),
      operation('control.inbox.clearAll', {
        access: 'admin',
        summary: 'Empty all inboxes',
        description: 'The response has the number of removed entries.',
        success: { 200: RemovedCount },
      }),
    )
    .get(
      '/:name',
      ({ params, query, request, stream }): { entries: InboxEntry[] } | Promise<Response> => {
        const { name } = params
        const { limit, follow } = query
        if (follow !== 'true' && !wantsEventStream(request.headers.get('accept'))) {
          const range = rangeOf(query, positions)
          return {
            entries: store.entries(name, { ...range, limit: limit ?? INBOX_LIMITS.entries }).map(toEntry),
          }
        }
        return streamStart(request, query, positions).then<Response>((start) =>
          stream(
            afterGap(start, (send, gone) =>
              streamItems(
                {
                  subscribe: (listener) => changes.subscribe(listener),
                  after: (seq, most) => store.entriesAfter(name, seq, Math.min(most, BATCH_SIZE)),
                  async send(row) {
                    await send('message', toEntry(row), row.id)
                    return true
                  },
                  from: start.from,
                  limit,
                },
                AbortSignal.any([gone, stopping]),
              ),
            ),
          ),
        )
      },
      operation(
        'control.inbox.read',
        {
          access: 'admin',
          summary: 'What an inbox got, newest first, or a stream of what comes',
          description: 'Each entry says whether its signature was right.',
          events: 'Each entry as it comes, as the event `message` with the data of the JSON response.',
          event: InboxStreamEvent,
          resumable: true,
          success: { 200: listOf('entries', InboxEntry) },
        },
        { query: InboxQuery, params: InboxParams },
      ),
    )
    .delete(
      '/:name',
      ({ params }) => ({ removed: store.clear(params.name) }),
      operation(
        'control.inbox.clear',
        {
          access: 'admin',
          summary: 'Empty an inbox',
          description: 'The response has the number of removed entries.',
          success: { 200: RemovedCount },
          errors: [400],
        },
        { params: InboxParams },
      ),
    )
}
