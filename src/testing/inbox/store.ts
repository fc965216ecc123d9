import { and, asc, count, desc, eq, getTableColumns, gt, max, min, sql } from 'drizzle-orm'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { InboxSummary } from './model.ts'
import { type InboxRow, inbox } from './table.ts'

/** How much is kept: what is older goes when something comes. */
export const KEPT = {
  /** Inboxes; the one that has been quiet for longest goes. */
  inboxes: 100,
  /** Entries of one. */
  entries: 1_000,
  /** Bytes of the entries of one, headers and bodies. */
  bytes: 16 * 1024 * 1024,
} as const

/** What the inboxes need. */
interface InboxDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** Is told of what comes. */
  changes: Notifier
}

/** Where a list begins, and how long it is at most. */
export interface Page {
  /** Only what came behind this position. */
  after?: number | undefined
  limit: number
}

/** What is kept of the requests that inboxes got. */
export class InboxStore {
  readonly #dependencies: InboxDependencies
  readonly #queries: Queries
  readonly #sizes = new Map<string, Size>()
  readonly #count = once(() =>
    this.#queries
      .select({ n: count() })
      .from(inbox)
      .where(and(eq(inbox.name, sql.placeholder('name')), gt(inbox.seq, sql.placeholder('after'))))
      .prepare(),
  )

  constructor(dependencies: InboxDependencies) {
    this.#dependencies = dependencies
    this.#queries = dependencies.queries
  }

  /** Keeps a request, and makes room for it. */
  add(entry: Omit<InboxRow, 'seq' | 'id' | 'receivedAt'>): InboxRow {
    const { clock, ids, changes } = this.#dependencies
    const { name } = entry
    const before = this.#sizeOf(name)
    const { row, size } = this.#queries.transaction(() => {
      if (before.count === 0) this.#makeRoomForName()
      const id = ids.next('msg', (taken) => this.position(taken) !== undefined)
      const values = { ...entry, id, receivedAt: clock.now() }
      const columns = { ...getTableColumns(inbox), bytes }
      const { bytes: size, ...row } = this.#queries.insert(inbox).values(values).returning(columns).get()
      const grown = { count: before.count + 1, bytes: before.bytes + size }
      return { row, size: this.#shrunk(name, grown) }
    })
    this.#sizes.set(name, size)
    changes.notify()
    return row
  }

  /** How many entries an inbox has behind a position. */
  count(name: string, after: number): number {
    return this.#count().get({ name, after })?.n ?? 0
  }

  /** How many of an inbox's entries carry this `webhook-id`; null for none. */
  attempts(name: string, messageId: string | null): number {
    const same = messageId === null ? sql`${inbox.messageId} IS NULL` : eq(inbox.messageId, messageId)
    const found = this.#queries
      .select({ n: count() })
      .from(inbox)
      .where(and(eq(inbox.name, name), same))
    return found.get()?.n ?? 0
  }

  /** The entries of an inbox, newest first. */
  list(name: string, { after, limit }: Page): InboxRow[] {
    const found = this.#queries.select().from(inbox).where(ofInbox(name, after))
    return found.orderBy(desc(inbox.seq)).limit(limit).all()
  }

  /** Those that came behind a position, oldest first. */
  since(name: string, after: number, limit: number): InboxRow[] {
    const found = this.#queries.select().from(inbox).where(ofInbox(name, after))
    return found.orderBy(asc(inbox.seq)).limit(limit).all()
  }

  /** The inboxes that have got something, the one that did last first. */
  names(): InboxSummary[] {
    const newest = max(inbox.seq)
    const rows = this.#queries
      .select({
        name: inbox.name,
        count: count(),
        bytes: total,
        // SQLite takes it from the row that the greatest number stands in.
        receivedAt: inbox.receivedAt,
        newest,
      })
      .from(inbox)
      .groupBy(inbox.name)
      .orderBy(desc(newest))
      .all()
    return rows.map(({ name, count, bytes, receivedAt }) => ({
      name,
      count,
      bytes,
      last_received_at: toIso(receivedAt),
    }))
  }

  /** Where the entry of this id stands; undefined where there is none. */
  position(id: string): number | undefined {
    return this.#queries.select({ seq: inbox.seq }).from(inbox).where(eq(inbox.id, id)).get()?.seq
  }

  /** The position of the last entry of all; 0 for none. */
  newest(): number {
    return (
      this.#queries.select({ seq: inbox.seq }).from(inbox).orderBy(desc(inbox.seq)).limit(1).get()?.seq ?? 0
    )
  }

  /** Empties an inbox, or all of them. Returns how many entries went. */
  clear(name?: string): number {
    const gone = this.#queries.delete(inbox).where(name === undefined ? undefined : eq(inbox.name, name))
    const { length } = gone.returning({ seq: inbox.seq }).all()
    if (name === undefined) this.#sizes.clear()
    else this.#sizes.delete(name)
    this.#dependencies.changes.notify()
    return length
  }

  /** Removes the inboxes that were quiet for longest, so that one more may be there. */
  #makeRoomForName(): void {
    const quiet = this.#queries
      .select({ name: inbox.name })
      .from(inbox)
      .groupBy(inbox.name)
      .orderBy(desc(max(inbox.seq)))
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(KEPT.inboxes - 1)
      .all()
    for (const { name } of quiet) {
      this.#queries.delete(inbox).where(eq(inbox.name, name)).run()
      this.#sizes.delete(name)
    }
  }

  /** Removes the oldest entries of an inbox that has grown too large. */
  #shrunk(name: string, size: Size): Size {
    let { count, bytes: total } = size
    while (count > KEPT.entries || total > KEPT.bytes) {
      const oldest = this.#queries
        .select({ seq: min(inbox.seq) })
        .from(inbox)
        .where(eq(inbox.name, name))
      const gone = this.#queries.delete(inbox).where(eq(inbox.seq, oldest)).returning({ bytes }).get()
      if (gone === undefined) break
      count -= 1
      total -= gone.bytes
    }
    return { count, bytes: total }
  }

  /** What is known of it, else counted: to count at every request would cost more than the request. */
  #sizeOf(name: string): Size {
    const known = this.#sizes.get(name)
    if (known) return known
    const found = this.#queries.select({ count: count(), bytes: total }).from(inbox)
    return found.where(eq(inbox.name, name)).get() ?? { count: 0, bytes: 0 }
  }
}

/** How much an inbox has. */
interface Size {
  count: number
  bytes: number
}

/** Bytes of an entry: what it was sent with. */
const bytes = sql<number>`length(${inbox.body}) + length(${inbox.headers})`

const total = sql<number>`coalesce(sum(${bytes}), 0)`

const ofInbox = (name: string, after?: number) =>
  and(eq(inbox.name, name), after === undefined ? undefined : gt(inbox.seq, after))
