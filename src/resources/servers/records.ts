import { and, count, eq, isNotNull, ne, type SQL, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Changes, ChangeType } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import type { ServerLifecycleListeners } from './lifecycle-listener.ts'
import type { ServerUpdate } from './model.ts'
import { deletedServers, filesKeyOf, type ServerRow, servers } from './table.ts'

/** Dependencies of the records. */
interface RecordsDependencies {
  queries: Queries
  outbox: Outbox
  metering: Metering
  /** Notified of every change. */
  changes: Changes
  /** Notified of deleted servers, inside the transaction. */
  listeners: Pick<ServerLifecycleListeners, 'serverDeleting'>
}

/** What is known of a server before it starts. Its other fields have their defaults. */
type NewServer = Pick<
  ServerRow,
  'id' | 'accountId' | 'task' | 'tier' | 'region' | 'status' | 'handle' | 'createdAt'
>

/** Stores the records of servers. The event and the charge of a state change are written in its transaction. */
export class ServerRecords {
  readonly #queries: Queries
  readonly #outbox: Outbox
  readonly #metering: Metering
  readonly #changes: Changes
  readonly #listeners: Pick<ServerLifecycleListeners, 'serverDeleting'>
  readonly #listByAccount
  readonly #find
  readonly #ofAccountById
  readonly #count
  readonly #add
  readonly #setAnnounced
  readonly #deleteRow
  /** Servers that have stopped, which cannot be written yet: they count as sleeping. */
  readonly #asleep = new Set<string>()
  #revision = 0

  constructor({ queries, outbox, metering, changes, listeners }: RecordsDependencies) {
    this.#queries = queries
    this.#outbox = outbox
    this.#metering = metering
    this.#changes = changes
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
    this.#add = once(() =>
      queries
        .insert(servers)
        .values({
          id: sql.placeholder('id'),
          accountId: sql.placeholder('accountId'),
          task: sql.placeholder('task'),
          tier: sql.placeholder('tier'),
          region: sql.placeholder('region'),
          status: sql.placeholder('status'),
          handle: sql.placeholder('handle'),
          createdAt: sql.placeholder('createdAt'),
        })
        .returning()
        .prepare(),
    )
    this.#setAnnounced = once(() =>
      queries
        .update(servers)
        .set({ announced: true })
        .where(eq(servers.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#deleteRow = once(() =>
      queries
        .delete(servers)
        .where(eq(servers.id, sql.placeholder('id')))
        .prepare(),
    )
  }

  /** Changes with what is not written yet, as the version of the database does with what is. */
  get revision(): number {
    return this.#revision
  }

  /** Returns the number of an account's servers. */
  count(accountId: string): number {
    return this.#count().get({ accountId })?.n ?? 0
  }

  /** Returns the servers of an account, newest first. */
  listByAccount(accountId: string): ServerRow[] {
    return this.#listByAccount().all({ accountId }).map(this.#current)
  }

  /** Returns a server of an account, or undefined if it has none with this id. */
  ofAccountById(accountId: string, id: string): ServerRow | undefined {
    return this.#current(this.#ofAccountById().get({ id, accountId }))
  }

  /** Returns a server of any account. */
  find(id: string): ServerRow | undefined {
    return this.#current(this.#find().get({ id }))
  }

  /** Records the URL of the published workspace; null for none. */
  setPublicUrl(id: string, publicUrl: string | null): void {
    this.change(id, { publicUrl })
  }

  /** Records what is set for its network; null is the instance's default. */
  setNetwork(id: string, network: ServerRow['network']): void {
    this.#queries.update(servers).set({ network }).where(eq(servers.id, id)).run()
  }

  /** Records where the driver finds it from now on. */
  setHandle(id: string, handle: ServerRow['handle']): void {
    this.#queries.update(servers).set({ handle }).where(eq(servers.id, id)).run()
  }

  /**
   * Records that a server has other files from now on.
   *
   * @param removesOld whether those of before are to be removed
   */
  move({ id, handle }: Pick<ServerRow, 'id' | 'handle'>, to: ServerRow['handle'], removesOld: boolean): void {
    this.#queries.transaction(() => {
      this.setHandle(id, to)
      this.forgetDeleted(filesKeyOf(id, to))
      if (removesOld) this.noteDeleted(filesKeyOf(id, handle), handle)
    })
  }

  /** Returns the servers of all accounts for which something is set for the network. */
  withNetwork(): { id: string; network: NonNullable<ServerRow['network']> }[] {
    const { id, network } = servers
    const rows = this.#queries.select({ id, network }).from(servers).where(isNotNull(network)).all()
    return rows.flatMap((row) => (row.network === null ? [] : [{ id: row.id, network: row.network }]))
  }

  /** Returns the servers that were running or building when berth last recorded their state. */
  running(): ServerRow[] {
    return this.#queries.select().from(servers).where(ne(servers.status, 'sleeping')).all()
  }

  /** Returns the deleted servers whose files may not be removed yet. */
  deleted(): Pick<ServerRow, 'id' | 'handle'>[] {
    // Files that were being copied for a server may be its own by now.
    const areNobodys = sql`${deletedServers.id} NOT IN (SELECT id FROM servers) AND ${deletedServers.handle} NOT IN (SELECT handle FROM servers)`
    return this.#queries.select().from(deletedServers).where(areNobodys).all()
  }

  /** Records files that no server has and that are to be removed, by a key that is no server's id. */
  noteDeleted(key: string, handle: ServerRow['handle']): void {
    this.#queries.run(
      sql`INSERT OR REPLACE INTO deleted_servers (id, handle) VALUES (${key}, ${JSON.stringify(handle)})`,
    )
  }

  /** Records that the files of a deleted server are removed. */
  forgetDeleted(id: string): void {
    this.#queries.run(sql`DELETE FROM deleted_servers WHERE id = ${id}`)
  }

  /** Returns the ids and handles of all servers. */
  placed(): Pick<ServerRow, 'id' | 'handle'>[] {
    return this.#queries.select({ id: servers.id, handle: servers.handle }).from(servers).all()
  }

  /** Returns the handles of all servers. */
  handles(): ServerRow['handle'][] {
    return this.placed().map(({ handle }) => handle)
  }

  add(row: NewServer): ServerRow {
    const added = this.#add().get(row)
    this.#notify(added)
    this.#notifyOfCount(added)
    return added
  }

  /** Changes fields of a server, if it exists. */
  change(id: string, changes: ServerUpdate | Pick<ServerRow, 'publicUrl'> | Pick<ServerRow, 'status'>): void {
    this.#update(eq(servers.id, id), changes)
  }

  /** Records that the server runs, and begins to charge for it. */
  markRunning(row: ServerRow): void {
    if (row.status === 'sleeping') this.change(row.id, { status: 'running' })
    this.#metering.begin(row)
    this.#setAsleep(row, false)
  }

  /** Records that a build begins or ends on a server. Does nothing for one that sleeps. */
  setBuilding(id: string, building: boolean): void {
    const [from, to] = building ? (['running', 'building'] as const) : (['building', 'running'] as const)
    this.#update(and(eq(servers.id, id), eq(servers.status, from)), { status: to })
  }

  /** Emits `server.created` for a server that runs for the first time. */
  announce({ id, accountId, tier, region }: ServerRow): void {
    this.#queries.transaction(() => {
      this.#setAnnounced().run({ id })
      this.#outbox.emit(accountId, 'server.created', { server_id: id, status: 'running', tier, region })
    })
  }

  /**
   * Records that the server has stopped, charges for its use and emits the event. Does nothing for one that sleeps. Where that
   * cannot be written, as on a full disk, the server counts as sleeping all the same, until it is written or starts.
   *
   * @throws the failure to write it, after which it is to be called again
   */
  markSleeping(id: string): void {
    const row = this.#find().get({ id })
    try {
      this.#writeSleeping(id)
    } catch (error) {
      if (row) this.#setAsleep(row, true)
      throw error
    }
    if (row) this.#setAsleep(row, false)
  }

  #writeSleeping(id: string): void {
    const charged = this.#queries.transaction(() => {
      const row = this.#find().get({ id })
      if (!row || row.status === 'sleeping') return null
      const { accountId, tier, region } = row
      const ended = this.#metering.end(id)
      this.change(id, { status: 'sleeping' })
      this.#outbox.emit(accountId, 'server.stopped', { server_id: id, status: 'sleeping', tier, region })
      return ended
    })
    charged?.()
  }

  /** Returns a record as it would be if all was written. */
  readonly #current = <Row extends ServerRow | undefined>(row: Row): Row =>
    row !== undefined && this.#asleep.has(row.id) ? { ...row, status: 'sleeping' } : row

  #setAsleep(row: Pick<ServerRow, 'id' | 'accountId'>, isAsleep: boolean): void {
    if (this.#asleep.has(row.id) === isAsleep) return
    if (isAsleep) this.#asleep.add(row.id)
    else this.#asleep.delete(row.id)
    this.#revision += 1
    this.#notify(row)
  }

  /** Deletes the record of a server that never started. */
  drop(id: string): void {
    const charged = this.#queries.transaction(() => {
      const row = this.find(id)
      return row && this.#delete(row)
    })
    charged?.()
  }

  /** Deletes the record of a server and emits the event. Its files are to be removed, which `forgetDeleted` records. */
  remove(row: ServerRow): void {
    const { id, accountId, tier, region, handle } = row
    const charged = this.#queries.transaction(() => {
      this.#listeners.serverDeleting(row)
      const ended = this.#delete(row)
      this.noteDeleted(id, handle)
      this.#outbox.emit(accountId, 'server.deleted', { server_id: id, tier, region })
      return ended
    })
    charged()
  }

  /**
   * @returns a function to call after the commit
   */
  #delete(row: ServerRow): () => void {
    const ended = this.#metering.end(row.id)
    this.#asleep.delete(row.id)
    if (this.#changes.isWatched(row.accountId)) this.#notifyOfContents(row)
    this.#deleteRow().run({ id: row.id })
    this.#notify(row)
    this.#notifyOfCount(row)
    return ended
  }

  #update(which: SQL | undefined, changes: Partial<ServerRow>): void {
    const where = { id: servers.id, accountId: servers.accountId }
    const changed = this.#queries.update(servers).set(changes).where(which).returning(where).get()
    if (changed) this.#notify(changed)
  }

  #notify({ id, accountId }: Pick<ServerRow, 'id' | 'accountId'>): void {
    this.#changes.notify('server', id, accountId, id)
  }

  /** Notifies that an account has another number of servers. */
  #notifyOfCount({ accountId }: ServerRow): void {
    this.#changes.notify('account', accountId, accountId)
  }

  /** Notifies of everything on a server that is about to be deleted with it. */
  #notifyOfContents({ id, accountId }: ServerRow): void {
    // Plain SQL: their modules may not be loaded.
    const contents = this.#queries.values<[ChangeType, string]>(
      sql`SELECT 'project', id FROM projects WHERE server_id = ${id}
        UNION ALL SELECT 'deployment', server_id FROM deployments WHERE server_id = ${id}
        UNION ALL SELECT 'task', id FROM tasks WHERE server_id = ${id}
        UNION ALL SELECT 'build', id FROM builds WHERE server_id = ${id}
        UNION ALL SELECT 'execution', id FROM executions WHERE server_id = ${id}
        UNION ALL SELECT DISTINCT 'secret', iif(project_id = '', server_id, project_id)
          FROM secrets WHERE server_id = ${id}`,
    )
    for (const [type, which] of contents) this.#changes.notify(type, which, accountId, id)
  }
}
