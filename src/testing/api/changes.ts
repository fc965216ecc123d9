import { eq, gt, max } from 'drizzle-orm'
import { Elysia, type Static, type TSchema, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { BerthError } from '../../errors.ts'
import { SHARED_ENDS } from '../../http/web-socket.ts'
import { Account } from '../../resources/accounts/model.ts'
import { changesOf } from '../../resources/changes/model.ts'
import type { ChangeMessage, ChangeSource, StreamSignal } from '../../resources/changes/stream.ts'
import { ChangeStreams } from '../../resources/changes/streams.ts'
import type { INSTANCE_CHANGE_TYPES } from '../../resources/changes/types.ts'
import type { Outbox } from '../../resources/events/outbox.ts'
import { events } from '../../resources/events/table.ts'
import type { NotifiedChange, Watcher } from '../../runtime/change-notifier.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import { InboxSummary } from '../inbox/model.ts'
import type { RequestJournal } from '../journal/journal.ts'
import type { ShownEntry } from '../journal/shown.ts'
import { clockState, ShownClock } from './clock.ts'
import { Delivery } from './deliveries.ts'
import { EmittedEvent, shownEvent } from './events.ts'
import { Fault, shownFault } from './faults.ts'
import { BODIES } from './list-query.ts'
import { ShownLocalWebhooks } from './local-webhooks.ts'
import type { ControlParts } from './parts.ts'
import { ALL_REQUESTS, JournalEntry } from './requests.ts'
import { Scenarios, shownScenarios } from './scenarios.ts'
import { ShownFaults, shownServerFaults } from './server-faults.ts'
import { Snapshot } from './states.ts'

/** The objects that `GET /_berth/changes` sends, by the type of their messages. */
const OBJECTS = {
  request: JournalEntry,
  event: EmittedEvent,
  delivery: Delivery,
  inbox: InboxSummary,
  local_webhooks: ShownLocalWebhooks,
  fault: Fault,
  /** All that last inside one server; its id is the server's. */
  server_fault: ShownFaults,
  clock: ShownClock,
  /** All scenarios: they are one list. */
  scenario: Scenarios,
  snapshot: Snapshot,
  account: Account,
} satisfies Record<(typeof INSTANCE_CHANGE_TYPES)[number] | 'account', TSchema>

/** The objects, with the type of an entry of the journal that says which fields go together. */
type ControlObjects = { request: ShownEntry } & {
  [Type in Exclude<keyof typeof OBJECTS, 'request'>]: Static<(typeof OBJECTS)[Type]>
}

type ControlType = keyof ControlObjects

/** A message of `GET /_berth/changes`. */
export type ControlChangeMessage =
  | {
      [Type in ControlType]: ChangeMessage<Type> & { readonly value: ControlObjects[Type] | null }
    }[ControlType]
  | StreamSignal

/** A message of `GET /_berth/changes`, for documents. */
const ControlChange = changesOf('ControlChange', ['ready', 'gap', 'reset'], OBJECTS)

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
  change.type in OBJECTS

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
