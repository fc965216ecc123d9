import { eq, sql } from 'drizzle-orm'
import { Notifier } from '../../runtime/change-notifier.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { once } from '../../runtime/once.ts'
import type { RequestContext } from '../../runtime/request-context.ts'
import type { Queries } from '../../storage/database.ts'
import type { EventData } from './data.ts'
import type { EmittedName } from './names.ts'
import { type EventRow, events } from './table.ts'

/** Number of events after which old ones are deleted. */
const DELETE_EVERY = 1_000

/** Dependencies of the outbox. */
interface OutboxDependencies {
  requests: RequestContext
  queries: Queries
  clock: Clock
  ids: Ids
  /** Called after every 1,000 events; null to keep all. */
  deleteOld: (() => void) | null
}

/**
 * Stores events in the transaction that causes them: a crash neither loses nor duplicates one. Deliveries read them
 * from here.
 */
export class Outbox {
  readonly #requests: RequestContext
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #deleteOld: (() => void) | null
  readonly #find
  readonly #insert
  readonly #emitted = new Notifier()

  constructor({ requests, queries, clock, ids, deleteOld }: OutboxDependencies) {
    this.#requests = requests
    this.#clock = clock
    this.#ids = ids
    this.#deleteOld = deleteOld
    this.#find = once(() =>
      queries
        .select({ id: events.id })
        .from(events)
        .where(eq(events.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#insert = once(() =>
      queries
        .insert(events)
        .values({
          id: sql.placeholder('id'),
          accountId: sql.placeholder('accountId'),
          event: sql.placeholder('event'),
          data: sql.placeholder('data'),
          requestId: sql.placeholder('requestId'),
          createdAt: sql.placeholder('createdAt'),
        })
        .returning()
        .prepare(),
    )
  }

  /** Stores an event. Call it inside the transaction that causes it. */
  emit<Name extends EmittedName>(accountId: string, event: Name, data: EventData[Name]): EventRow {
    const id = this.#ids.next('evt', (taken) => this.#find().get({ id: taken }) !== undefined)
    const { requestId } = this.#requests
    const createdAt = this.#clock.now()
    const row = this.#insert().get({ id, accountId, event, data: { ...data }, requestId, createdAt })
    this.#emitted.notify()
    if (row.seq % DELETE_EVERY === 0) this.#deleteOld?.()
    return row
  }

  /**
   * Calls `listener` after commits that may contain new events. One call may be for several commits.
   *
   * @returns a function that ends the subscription
   */
  subscribe(listener: () => void): () => void {
    return this.#emitted.subscribe(listener)
  }
}
