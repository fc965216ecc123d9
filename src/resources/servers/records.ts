import { and, count, eq, ne, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Outbox } from '../events/outbox.ts'
import type { ServerLifecycleListeners } from './lifecycle-listener.ts'
import type { ServerUpdate } from './model.ts'
import { type ServerRow, servers } from './table.ts'

/** Dependencies of the records. */
interface RecordsDependencies {
  queries: Queries
  outbox: Outbox
  metering: Metering
  /** Notified of deleted servers, inside the transaction. */
  listeners: Pick<ServerLifecycleListeners, 'serverDeleting'>
}

/** Stores the records of servers. The event and the charge of a state change are written in its transaction. */
export class ServerRecords {
  readonly #queries: Queries
  readonly #outbox: Outbox
  readonly #metering: Metering
  readonly #listeners: Pick<ServerLifecycleListeners, 'serverDeleting'>
  readonly #listByAccount
  readonly #find
  readonly #ofAccountById
  readonly #count

  constructor({ queries, outbox, metering, listeners }: RecordsDependencies) {
    this.#queries = queries
    this.#outbox = outbox
    this.#metering = metering
    this.#listeners = listeners
    this.#listByAccount = once(() =>
      queries
        .select()
        .from(servers)
        .where(eq(servers.accountId, sql.placeholder('accountId')))
        .orderBy(sql`rowid desc`)
        .prepare(),
    )
    this.#find = once(() =>
      queries
        .select()
        .from(servers)
        .where(eq(servers.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#ofAccountById = once(() =>
      queries
        .select()
        .from(servers)
        .where(
          and(eq(servers.id, sql.placeholder('id')), eq(servers.accountId, sql.placeholder('accountId'))),
        )
        .prepare(),
    )
    this.#count = once(() =>
      queries
        .select({ n: count() })
        .from(servers)
        .where(eq(servers.accountId, sql.placeholder('accountId')))
        .prepare(),
    )
  }

  /** Returns the number of an account's servers. */
  count(accountId: string): number {
    return this.#count().get({ accountId })?.n ?? 0
  }

  /** Returns the servers of an account, newest first. */
  listByAccount(accountId: string): ServerRow[] {
    return this.#listByAccount().all({ accountId })
  }

  /** Returns a server of an account, or undefined if it has none with this id. */
  ofAccountById(accountId: string, id: string): ServerRow | undefined {
    return this.#ofAccountById().get({ id, accountId })
  }

  /** Returns a server of any account. */
  find(id: string): ServerRow | undefined {
    return this.#find().get({ id })
  }

  /** Records the URL of the published workspace; null for none. */
  setPublicUrl(id: string, publicUrl: string | null): void {
    this.#queries.update(servers).set({ publicUrl }).where(eq(servers.id, id)).run()
  }

  /** Records what is set for its network; null is the instance's default. */
  setNetwork(id: string, network: ServerRow['network']): void {
    this.#queries.update(servers).set({ network }).where(eq(servers.id, id)).run()
  }

  /** Returns the servers that were running or building when berth last recorded their state. */
  running(): ServerRow[] {
    return this.#queries.select().from(servers).where(ne(servers.status, 'sleeping')).all()
  }

  /** Returns the handles of all servers. */
  handles(): ServerRow['handle'][] {
    const known = this.#queries.select({ handle: servers.handle }).from(servers).all()
    return known.map(({ handle }) => handle)
  }

  add(row: typeof servers.$inferInsert): ServerRow {
    return this.#queries.insert(servers).values(row).returning().get()
  }

  change(id: string, changes: ServerUpdate): void {
    this.#queries.update(servers).set(changes).where(eq(servers.id, id)).run()
  }

  /** Records that the server runs, and begins to charge for it. */
  markRunning(row: ServerRow): void {
    if (row.status === 'sleeping') this.#setStatus(row.id, 'running')
    this.#metering.begin(row)
  }

  /** Records that a build begins or ends on a server. Does nothing for one that sleeps. */
  setBuilding(id: string, building: boolean): void {
    const [from, to] = building ? (['running', 'building'] as const) : (['building', 'running'] as const)
    this.#queries
      .update(servers)
      .set({ status: to })
      .where(and(eq(servers.id, id), eq(servers.status, from)))
      .run()
  }

  /** Emits `server.created` for a server that runs for the first time. */
  announce({ id, accountId, tier, region }: ServerRow): void {
    this.#queries.transaction(() => {
      this.#queries.update(servers).set({ announced: true }).where(eq(servers.id, id)).run()
      this.#outbox.emit(accountId, 'server.created', { server_id: id, status: 'running', tier, region })
    })
  }

  /** Records that the server has stopped, charges for its use and emits the event. Does nothing for one that sleeps. */
  markSleeping(id: string): void {
    const charged = this.#queries.transaction(() => {
      const row = this.find(id)
      if (!row || row.status === 'sleeping') return null
      const { accountId, tier, region } = row
      const ended = this.#metering.end(id)
      this.#setStatus(id, 'sleeping')
      this.#outbox.emit(accountId, 'server.stopped', { server_id: id, status: 'sleeping', tier, region })
      return ended
    })
    charged?.()
  }

  /** Deletes the record of a server that never started. */
  drop(id: string): void {
    const charged = this.#queries.transaction(() => this.#delete(id))
    charged()
  }

  /** Deletes the record of a server and emits the event. */
  remove(row: ServerRow): void {
    const { id, accountId, tier, region } = row
    const charged = this.#queries.transaction(() => {
      this.#listeners.serverDeleting(row)
      const ended = this.#delete(id)
      this.#outbox.emit(accountId, 'server.deleted', { server_id: id, tier, region })
      return ended
    })
    charged()
  }

  /**
   * @returns a function to call after the commit
   */
  #delete(id: string): () => void {
    const ended = this.#metering.end(id)
    this.#queries.delete(servers).where(eq(servers.id, id)).run()
    return ended
  }

  #setStatus(id: string, status: ServerRow['status']): void {
    this.#queries.update(servers).set({ status }).where(eq(servers.id, id)).run()
  }
}
