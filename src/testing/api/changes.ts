import { eq, gt, max } from 'drizzle-orm'
import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { oneOf } from '../../contract/schema.ts'
import { BerthError } from '../../errors.ts'
import { SHARED_ENDS } from '../../http/web-socket.ts'
import type { ChangeMessage, ChangeSource, StreamSignal } from '../../resources/changes/stream.ts'
import { ChangeStreams } from '../../resources/changes/streams.ts'
import { INSTANCE_CHANGE_TYPES } from '../../resources/changes/types.ts'
import type { Outbox } from '../../resources/events/outbox.ts'
import { events } from '../../resources/events/table.ts'
import type { LocalWebhooks } from '../../resources/webhooks/destination.ts'
import type { NotifiedChange, Watcher } from '../../runtime/change-notifier.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { InboxSummary } from '../inbox/model.ts'
import type { RequestJournal } from '../journal/journal.ts'
import type { ShownEntry } from '../journal/shown.ts'
import type { Snapshot } from '../snapshots/snapshots.ts'
import type { Account } from './accounts.ts'
import { clockState, type ShownClock } from './clock.ts'
import type { Delivery } from './deliveries.ts'
import { type EmittedEvent, shownEvent } from './events.ts'
import { type Fault, shownFault } from './faults.ts'
import { BODIES } from './list-query.ts'
import type { ControlParts } from './parts.ts'
import { ALL_REQUESTS } from './requests.ts'
import { type Scenarios, shownScenarios } from './scenarios.ts'
import { type ShownFault, shownServerFaults } from './server-faults.ts'

/** The objects that `GET /_berth/changes` sends, by the type of their messages. */
interface ControlObjects {
  request: ShownEntry
  event: EmittedEvent
  delivery: Delivery
  fault: Fault
  /** All that last inside one server; its id is the server's. */
  server_fault: { readonly faults: readonly ShownFault[] }
  clock: ShownClock
  snapshot: Snapshot
  /** All scenarios: they are one list. */
  scenario: Scenarios
  inbox: InboxSummary
  local_webhooks: LocalWebhooks
  account: Account
}

type ControlType = keyof ControlObjects

/** A message of `GET /_berth/changes`. */
export type ControlChangeMessage =
  | {
      [Type in ControlType]: ChangeMessage<Type> & { readonly value: ControlObjects[Type] | null }
    }[ControlType]
  | StreamSignal

const TYPES = [...INSTANCE_CHANGE_TYPES, 'account'] as const satisfies readonly ControlType[]

/** A message of `GET /_berth/changes`, for documents. */
const ControlChange = t.Object(
  {
    type: oneOf(['ready', 'gap', 'reset', ...TYPES], { $id: 'ControlChangeType' }),
    id: t.Optional(t.String({ description: 'Of the object; `ready`, `gap` and `reset` are about none.' })),
    value: t.Optional(
      t.Nullable(t.Record(t.String(), t.Unknown()), {
        description: 'The object as its list shows it; null if it is gone.',
      }),
    ),
  },
  { $id: 'ControlChange' },
)

/** Serves `/_berth/changes`: a stream of everything that happens in the instance. */
export const controlChangesRoutes = (parts: ControlParts) => {
  const { access, services, stopping } = parts
  const open = once(() => {
    const streams = new ChangeStreams(services)
    const stop = (): void => streams.stop()
    if (stopping.aborted) stop()
    stopping.addEventListener('abort', stop)
    return {
      streams,
      sources: { true: sourceOf(parts, streams, true), false: sourceOf(parts, streams, false) },
    }
  })
  return new Elysia({ prefix: '/_berth/changes' }).use(access).get(
    '',
    ({ query: { bodies = 'true' }, request, set, stream, whileValid }) => {
      const { streams, sources } = open()
      const endOfCredential = SHARED_ENDS.sessionEnded
      return streams.respond(sources[bodies], { request, set, stream, whileValid, endOfCredential })
    },
    operation(
      'control.changes.stream',
      {
        access: 'admin',
        summary: 'Follow everything that happens',
        description:
          'A WebSocket with a JSON text for each message, or an event stream with the same JSON, as with `changes.stream` of the API: first `{"type": "ready"}`, then `{"type", "id", "value"}` for each request that got its response, each event, delivery, fault, the faults inside a server, each snapshot, inbox and account that is added, has changed or was removed, the clock when it is moved, whether webhooks may lead to this machine, and the list of scenarios. `{"type": "reset"}` is the last message before the state is replaced by a reset or a snapshot: connect again, then load again.',
        gives: 'text/event-stream',
        success: { 101: t.Void(), 200: ControlChange },
        errors: [426, 503],
      },
      { query: t.Object({ bodies: BODIES }, { additionalProperties: false }) },
    ),
  )
}

/**
 * Returns everything that happens in the instance.
 *
 * @param bodies whether requests have those of themselves and of their responses
 */
function sourceOf(parts: ControlParts, streams: ChangeStreams, bodies: boolean): ChangeSource<ControlType> {
  const { changes, journal, outbox, queries } = parts.services
  const readers = readersOf(parts, bodies)
  return {
    watch(watcher) {
      const ends = [
        changes.watch(null, (change) => {
          if (change.type === 'reset') streams.replace()
          else if (isShown(change)) watcher(change)
        }),
        watchRequests(journal, watcher),
        watchEvents(queries, outbox, watcher),
      ]
      return () => {
        for (const end of ends) end()
      }
    },
    async read({ type, id }) {
      const found = await readers[type](id)
      if (type === 'request' && id === ALL_REQUESTS) return { type, id, value: null }
      // Each request and event is sent once, under its own id, and never changes.
      if (type === 'request') return found && { type, id: (found as ShownEntry).id, value: found }
      if (type === 'event' && found === undefined) return undefined
      return { type, id, value: found ?? null }
    },
  }
}

const isShown = (change: NotifiedChange<string>): change is NotifiedChange<ControlType> =>
  (TYPES as readonly string[]).includes(change.type)

/** Passes on each request that gets its response; its id is its number. */
function watchRequests(journal: RequestJournal, watcher: Watcher<ControlType>): () => void {
  let { last } = journal
  return journal.subscribe(() => {
    for (; last < journal.last; last += 1) watcher(changeOf('request', String(last + 1)))
  })
}

/** Passes on each event that is emitted. */
function watchEvents(queries: Queries, outbox: Outbox, watcher: Watcher<ControlType>): () => void {
  let last =
    queries
      .select({ seq: max(events.seq) })
      .from(events)
      .get()?.seq ?? 0
  return outbox.subscribe(() => {
    const found = queries.select({ id: events.id, seq: events.seq }).from(events)
    for (const { id, seq } of found.where(gt(events.seq, last)).orderBy(events.seq).all()) {
      last = seq
      watcher(changeOf('event', id))
    }
  })
}

const changeOf = (type: ControlType, id: string): NotifiedChange<ControlType> => ({
  type,
  id,
  accountId: null,
  serverId: null,
})

/** Return an object of each type as its list shows it; undefined if it is gone. */
type Readers = {
  readonly [Type in ControlType]: (
    id: string,
  ) => ControlObjects[Type] | undefined | Promise<ControlObjects[Type] | undefined>
}

function readersOf({ services, ...parts }: ControlParts, bodies: boolean): Readers {
  const { queries, journal, faults, compute, clock, scenarios, localWebhooks } = services
  const { states, inbox, accounts, operations, masks } = parts
  return {
    async request(id) {
      const [numbered] = journal.after(Number(id) - 1, 1)
      if (numbered?.seq !== Number(id)) return undefined
      const [{ shownEntry }, index] = await Promise.all([import('../journal/shown.ts'), operations()])
      return shownEntry(numbered.entry, { operations: index, known: masks(), bodies })
    },
    event(id) {
      const row = queries.select().from(events).where(eq(events.id, id)).get()
      return row && shownEvent(row)
    },
    async delivery(id) {
      const { readDeliveries } = await import('../../resources/webhooks/history.ts')
      return readDeliveries(queries, { id, limit: 1 })[0]
    },
    fault(id) {
      const row = faults.find(id)
      return row && shownFault(row)
    },
    server_fault(id) {
      const active = shownServerFaults(compute, id)
      return active.length === 0 ? undefined : { faults: active }
    },
    clock: () => clockState(clock),
    snapshot: (name) => states.snapshots().find((one) => one.name === name),
    scenario: () => shownScenarios(scenarios),
    inbox: (name) => inbox.list().find((one) => one.name === name),
    local_webhooks: () => ({ allowed: localWebhooks.allowed }),
    account(id) {
      try {
        return accounts.get(id)
      } catch (error) {
        if (error instanceof BerthError && error.status === 404) return undefined
        throw error
      }
    },
  }
}
