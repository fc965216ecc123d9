import { gt, max, sql } from 'drizzle-orm'
import type { Changes, ChangeType } from '../../resources/changes/types.ts'
import type { Outbox } from '../../resources/events/outbox.ts'
import { events } from '../../resources/events/table.ts'
import { readDeliveries } from '../../resources/webhooks/history.ts'
import type { NotifiedChange } from '../../runtime/change-notifier.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import { type EmittedEvent, shownEvent } from '../api/events.ts'
import { type Fault, shownFault } from '../api/faults.ts'
import type { FaultStore } from '../faults/store.ts'

/** Types of objects that are recorded: those that the timeline shows, and accounts. */
const OBJECTS = [
  'server',
  'project',
  'task',
  'build',
  'execution',
  'terminal',
  'deployment',
  'account',
] as const satisfies readonly ChangeType[]
type ObjectType = (typeof OBJECTS)[number]

/** A delivery with its attempts. */
export type RecordedDelivery = ReturnType<typeof readDeliveries>[number]

/** An object after a change. */
export interface RecordedObject {
  /** ISO 8601, by berth's clock. */
  readonly at: string
  readonly type: ObjectType
  readonly id: string
  readonly account_id: string
  readonly server_id: string | null
  /** As its `GET` returns it; null if it is gone. */
  readonly value: unknown
}

/** Receives what happens in a state. */
interface StateListener {
  /** Takes the id of a server that is there, or has changed. */
  server(id: string): void
  event(event: EmittedEvent): void
  delivery(delivery: RecordedDelivery): void
  object(object: RecordedObject): void
  /** Takes a fault that is removed, or that is there at the end. */
  endedFault(fault: Fault): void
}

/** The parts of a state that are recorded. */
export interface StateParts {
  readonly queries: Queries
  readonly clock: Clock
  readonly changes: Changes
  readonly outbox: Outbox
  readonly faults: FaultStore
  /** Returns an object of an account as its `GET` does; null if it is gone. */
  readonly read: (change: NotifiedChange<ChangeType>) => Promise<unknown>
}

/**
 * Follows everything that is stored in a state, and reads it at once: an account takes all that is its own with it when it is
 * deleted.
 *
 * @returns a function that ends this, and resolves when everything was read
 */
export function followState(parts: StateParts, listener: StateListener): () => Promise<void> {
  const { changes } = parts
  const faults = new Map<string, Fault>()
  const reading = new Set<Promise<void>>()
  const due = new Map<string, NotifiedChange<ChangeType>>()
  const readAll = (): void => {
    const batch = [...due.values()]
    due.clear()
    for (const change of batch) {
      if (change.type === 'delivery') {
        const [delivery] = readDeliveries(parts.queries, { id: change.id, limit: 1 })
        if (delivery) listener.delivery(delivery)
      } else if (change.type === 'fault') {
        const row = parts.faults.find(change.id)
        const known = faults.get(change.id)
        if (row) faults.set(change.id, shownFault(row))
        else if (known) listener.endedFault(known)
        if (!row) faults.delete(change.id)
      } else {
        const work = readObject(parts, change, listener)
        reading.add(work)
        void work.finally(() => reading.delete(work))
      }
    }
  }
  for (const row of parts.faults.list()) faults.set(row.id, shownFault(row))
  for (const [id] of parts.queries.values<[string]>(sql`SELECT id FROM servers`)) listener.server(id)
  const ends = [
    followEvents(parts, listener),
    changes.watch(null, (change) => {
      if (change.type === 'server') listener.server(change.id)
      if (!isRecorded(change)) return
      // Inside a transaction, which ends before the microtask.
      if (due.size === 0) queueMicrotask(readAll)
      due.set(`${change.type} ${change.id}`, change)
    }),
  ]
  return async () => {
    readAll()
    for (const end of ends) end()
    for (const row of parts.faults.list()) listener.endedFault(shownFault(row))
    await Promise.all(reading)
  }
}

const isRecorded = ({ type }: NotifiedChange<ChangeType>): boolean =>
  type === 'delivery' || type === 'fault' || (OBJECTS as readonly string[]).includes(type)

async function readObject(
  { clock, read }: StateParts,
  change: NotifiedChange<ChangeType>,
  listener: StateListener,
): Promise<void> {
  const { type, id, accountId, serverId } = change
  if (accountId === null) return
  const at = new Date(clock.now()).toISOString()
  const value = await read(change)
  listener.object({
    at,
    type: type as ObjectType,
    id,
    account_id: accountId,
    server_id: type === 'server' ? id : serverId,
    value,
  })
}

/** Passes on each event that is emitted. */
function followEvents({ queries, outbox }: StateParts, listener: StateListener): () => void {
  let last =
    queries
      .select({ seq: max(events.seq) })
      .from(events)
      .get()?.seq ?? 0
  const read = (): void => {
    for (const row of queries.select().from(events).where(gt(events.seq, last)).orderBy(events.seq).all()) {
      last = row.seq
      listener.event(shownEvent(row))
    }
  }
  const unsubscribe = outbox.subscribe(read)
  return () => {
    unsubscribe()
    read()
  }
}
