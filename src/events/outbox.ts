import { eq } from 'drizzle-orm'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Queries } from '../storage/database.ts'
import type { EventData } from './data.ts'
import type { EventName } from './names.ts'
import { type EventRow, events } from './table.ts'

/** What the outbox needs. */
interface OutboxDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
}

/**
 * Where events are written in the transaction that causes them, so that a crash loses none and makes
 * none up. Whoever delivers them reads them from here.
 */
export class Outbox {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #listeners = new Set<() => void>()
  #telling = false

  constructor({ queries, clock, ids }: OutboxDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
  }

  /** Writes an event. Call it inside the transaction that makes it true: there is one connection. */
  emit<Name extends EventName>(accountId: string, event: Name, data: EventData[Name]): EventRow {
    const id = this.#ids.next('evt', (taken) => this.#find(taken) !== undefined)
    const row = this.#queries
      .insert(events)
      .values({ id, accountId, event, data: { ...data }, createdAt: this.#clock.now() })
      .returning()
      .get()
    this.#tellSoon()
    return row
  }

  /**
   * Has `listener` called after commits with which events may have come; several may come at once.
   *
   * @returns ends it
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #find(id: string): { id: string } | undefined {
    return this.#queries.select({ id: events.id }).from(events).where(eq(events.id, id)).get()
  }

  /** A transaction is synchronous: what is queued here runs when it is over. */
  #tellSoon(): void {
    if (this.#telling) return
    this.#telling = true
    queueMicrotask(() => {
      this.#telling = false
      for (const listener of this.#listeners) listener()
    })
  }
}
