import { and, asc, count, desc, eq, getTableColumns, gt, lt, max, ne, sql } from 'drizzle-orm'
import type { Changes } from '../../resources/changes/types.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { InboxSummary } from './model.ts'
import { type InboxRow, inbox } from './table.ts'

/**
 * Limits of an inbox. New requests displace the oldest ones, first those without a right signature: anybody on this
 * machine, programs of servers too, can send such.
 */
export const INBOX_LIMITS = {
  /** Inboxes. The one without requests for longest is removed, first those that got no right signature. */
  inboxes: 100,
  /** Entries in an inbox. */
  entries: 1_000,
  /** Bytes of an inbox's entries: headers and bodies. */
  bytes: 16 * 1024 * 1024,
} as const

/** Dependencies of the inboxes. */
interface InboxDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** Notified of every change. */
  changes: Changes
}

/** A page of a list. */
export interface EntryPage {
  /** Only entries after this position. */
  after?: number | undefined
  /** Only entries before this position. */
  before?: number | undefined
  limit: number
}

/** Stores the requests that inboxes receive. */
export class InboxStore {
  readonly #dependencies: InboxDependencies
  readonly #queries: Queries
  readonly #sizes = new Map<string, InboxSize>()
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

  /** Stores a request and removes old ones beyond the limits. */
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
      return { row, size: this.#shrink(name, grown) }
    })
    this.#sizes.set(name, size)
    changes.notify('inbox', name, null)
    return row
  }

  /** Returns the number of entries in an inbox after a position. */
  count(name: string, after: number): number {
    return this.#count().get({ name, after })?.n ?? 0
  }

  /**
   * Returns the number of an inbox's entries with a `webhook-id`, or without one for null, that were sent with the same
   * query: two webhooks may lead to one inbox.
   */
  attempts(name: string, query: string, messageId: string | null): number {
    const same = messageId === null ? sql`${inbox.messageId} IS NULL` : eq(inbox.messageId, messageId)
    const found = this.#queries
      .select({ n: count() })
      .from(inbox)
      .where(and(eq(inbox.name, name), eq(inbox.query, query), same))
    return found.get()?.n ?? 0
  }

  /** Returns the entries of an inbox, newest first. */
  entries(name: string, { after, before, limit }: EntryPage): InboxRow[] {
    const found = this.#queries
      .select()
      .from(inbox)
      .where(ofInbox(name, after, before))
    return found.orderBy(desc(inbox.seq)).limit(limit).all()
  }

  /** Returns the entries of an inbox after a position, oldest first. */
  entriesAfter(name: string, after: number, limit: number): InboxRow[] {
    const found = this.#queries.select().from(inbox).where(ofInbox(name, after))
    return found.orderBy(asc(inbox.seq)).limit(limit).all()
  }

  /** Returns the inboxes with entries. The one with the newest entry comes first. */
  list(): InboxSummary[] {
    const newest = max(inbox.seq)
    const rows = this.#queries
      .select({
        name: inbox.name,
        count: count(),
        bytes: total,
        // SQLite reads a bare column from the row with the maximum.
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

  /** Returns the position of an entry, or undefined if there is none with this id. */
  position(id: string): number | undefined {
    return this.#queries.select({ seq: inbox.seq }).from(inbox).where(eq(inbox.id, id)).get()?.seq
  }

  /** Returns the position of the newest entry of all inboxes; 0 if there is none. */
  newest(): number {
    return (
      this.#queries.select({ seq: inbox.seq }).from(inbox).orderBy(desc(inbox.seq)).limit(1).get()?.seq ?? 0
    )
  }

  /**
   * Empties an inbox, or all of them.
   *
   * @returns the number of removed entries
   */
  clear(name?: string): number {
    const gone = this.#queries.delete(inbox).where(name === undefined ? undefined : eq(inbox.name, name))
    const removed = gone.returning({ name: inbox.name }).all()
    if (name === undefined) this.#sizes.clear()
    else this.#sizes.delete(name)
    const { changes } = this.#dependencies
    for (const one of new Set(removed.map((entry) => entry.name))) changes.notify('inbox', one, null)
    return removed.length
  }

  /** Removes the inboxes that are worth least, to make room for one more. */
  #makeRoomForName(): void {
    const quiet = this.#queries
      .select({ name: inbox.name })
      .from(inbox)
      .groupBy(inbox.name)
      .orderBy(desc(max(isSigned)), desc(max(inbox.seq)))
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(INBOX_LIMITS.inboxes - 1)
      .all()
    for (const { name } of quiet) {
      this.#queries.delete(inbox).where(eq(inbox.name, name)).run()
      this.#sizes.delete(name)
    }
  }

  /**
   * Removes old entries of an inbox until it is within the limits. The newest stays.
   *
   * @returns its new size
   */
  #shrink(name: string, size: InboxSize): InboxSize {
    let { count, bytes: total } = size
    while (count > INBOX_LIMITS.entries || total > INBOX_LIMITS.bytes) {
      const newest = this.#queries
        .select({ seq: max(inbox.seq) })
        .from(inbox)
        .where(ofInbox(name))
      const oldest = this.#queries
        .select({ seq: inbox.seq })
        .from(inbox)
        .where(and(ofInbox(name), ne(inbox.seq, newest)))
        .orderBy(asc(isSigned), asc(inbox.seq))
        .limit(1)
      const gone = this.#queries.delete(inbox).where(eq(inbox.seq, oldest)).returning({ bytes }).get()
      if (gone === undefined) break
      count -= 1
      total -= gone.bytes
    }
    return { count, bytes: total }
  }

  /** Returns the remembered size of an inbox, or counts it. Counting for each request would be slow. */
  #sizeOf(name: string): InboxSize {
    const known = this.#sizes.get(name)
    if (known) return known
    const found = this.#queries.select({ count: count(), bytes: total }).from(inbox)
    return found.where(eq(inbox.name, name)).get() ?? { count: 0, bytes: 0 }
  }
}

/** The size of an inbox. */
interface InboxSize {
  count: number
  bytes: number
}

/** Bytes of an entry: headers and body. */
const bytes = sql<number>`length(${inbox.body}) + length(${inbox.headers})`

const total = sql<number>`coalesce(sum(${bytes}), 0)`

/** 1 if the signature of a request was right, else 0. */
const isSigned = sql<number>`coalesce(${inbox.verified}, 0)`

const ofInbox = (name: string, after?: number, before?: number) =>
  and(
    eq(inbox.name, name),
    after === undefined ? undefined : gt(inbox.seq, after),
    before === undefined ? undefined : lt(inbox.seq, before),
  )
