import { and, eq, sql } from 'drizzle-orm'
import { type Caller, mayReachServer } from '../../accounts/caller.ts'
import { TIER_LIMITS } from '../../accounts/tiers.ts'
import { type Compute, ComputeError, type Handle, type Sandbox } from '../../compute/driver.ts'
import { Fleet } from '../../compute/fleet.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { BerthError, notFound } from '../../errors.ts'
import type { Outbox } from '../../events/outbox.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { once } from '../../runtime/once.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { ReadCache } from '../../storage/read-cache.ts'
import { IdleWatch } from './idle.ts'
import type {
  CreatedServer,
  Server,
  ServerAction,
  ServerCreate,
  ServerStatus,
  ServerUpdate,
} from './model.ts'
import { StorageMeter } from './storage-meter.ts'
import { type ServerRow, servers, toServer } from './table.ts'

/** How long a look at one server waits for a fresh measurement of its files. */
const MEASURE_PATIENCE_MS = 50

/** How many servers come up at a time when berth starts. */
const RECOVERY_WIDTH = 8

/** What the servers need. */
export interface ServersDependencies {
  database: Database
  clock: Clock
  ids: Ids
  logger: Logger
  compute: Compute
  outbox: Outbox
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
}

/**
 * Servers: their records and the sandboxes behind them. Whatever changes whether a server runs goes
 * through one queue per server, so that a stop and a start never cross.
 */
export class ServersService {
  readonly meter: StorageMeter
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #logger: Logger
  readonly #compute: Compute
  readonly #outbox: Outbox
  readonly #fleet: Fleet
  readonly #idle: IdleWatch
  readonly #lists: ReadCache<Server[]>
  readonly #rows: ReadCache<ServerRow | undefined>
  readonly #turns = new KeyedMutex()
  #reaped: Promise<void> | undefined
  #stopping = false
  readonly #ofAccount
  readonly #ofAccountById

  constructor({ database, clock, ids, logger, compute, outbox, idleTimeoutMs }: ServersDependencies) {
    const { queries } = database
    this.#queries = queries
    this.#lists = new ReadCache(database.version)
    this.#rows = new ReadCache(database.version)
    this.#clock = clock
    this.#ids = ids
    this.#logger = logger
    this.#compute = compute
    this.#outbox = outbox
    this.meter = new StorageMeter(queries, compute, logger)
    this.#fleet = new Fleet(compute, logger, (serverId) => this.#markSleeping(serverId))
    this.#idle = new IdleWatch(clock, idleTimeoutMs, (serverId) => this.#sleepWhenIdle(serverId))
    this.#ofAccount = once(() =>
      queries
        .select()
        .from(servers)
        .where(eq(servers.accountId, sql.placeholder('accountId')))
        .orderBy(sql`rowid desc`)
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
  }

  /** The servers that the caller reaches, newest first. */
  list(caller: Caller): Server[] {
    const { accountId } = caller
    const all = this.#lists.get(accountId, () => this.#ofAccount().all({ accountId }).map(toServer))
    return caller.servers === null ? all : all.filter(({ id }) => mayReachServer(caller, id))
  }

  /** Whether an account has a server of this id. */
  owns(accountId: string, id: string): boolean {
    return this.#ofAccountById().get({ id, accountId }) !== undefined
  }

  /** The record of one of the servers that the caller reaches. @throws BerthError 404 */
  row(caller: Caller, id: string): ServerRow {
    const { accountId } = caller
    const row = mayReachServer(caller, id)
      ? this.#rows.get(`${accountId} ${id}`, () => this.#ofAccountById().get({ id, accountId }))
      : undefined
    if (!row) throw notFound(`The server "${id}"`)
    return row
  }

  /** One server, its storage measured afresh where that is quickly done. @throws BerthError 404 */
  async get(caller: Caller, id: string): Promise<Server> {
    await this.meter.refresh(this.row(caller, id), MEASURE_PATIENCE_MS)
    return toServer(this.row(caller, id))
  }

  /** Provisions a server: it runs when this resolves. @throws BerthError 502 where its sandbox does not start */
  async create(
    caller: Caller,
    { task = '', tier = 'small', region = 'us-east' }: ServerCreate,
  ): Promise<CreatedServer> {
    const id = this.#ids.next('srv', (taken) => this.#find(taken) !== undefined)
    return this.#turns.run(id, async () => {
      const handle = await this.#compute.create(id)
      try {
        const row = this.#queries
          .insert(servers)
          .values({
            id,
            accountId: caller.accountId,
            task,
            tier,
            region,
            status: 'running',
            handle,
            createdAt: this.#clock.now(),
          })
          .returning()
          .get()
        await this.#start(row)
        this.#announce(row)
      } catch (error) {
        this.#remove(id)
        await this.#destroy(id, handle)
        throw error
      }
      return { id, url: null, status: 'running', tier }
    })
  }

  /** Changes label or region. @throws BerthError 404 */
  async update(caller: Caller, id: string, changes: ServerUpdate): Promise<Server> {
    this.row(caller, id)
    if (Object.keys(changes).length > 0) {
      this.#queries.update(servers).set(changes).where(eq(servers.id, id)).run()
    }
    return this.get(caller, id)
  }

  /** Ends and removes a server with everything in it. @throws BerthError 404 */
  async delete(caller: Caller, id: string): Promise<void> {
    // At once: how long a refusal takes must not tell that there is such a server.
    this.row(caller, id)
    await this.#turns.run(id, async () => {
      const { handle, accountId, tier, region } = this.row(caller, id)
      this.#queries.transaction(() => {
        this.#remove(id)
        this.#outbox.emit(accountId, 'server.deleted', { server_id: id, tier, region })
      })
      this.#idle.forget(id)
      await this.#fleet.stop(id)
      this.meter.forget(id)
      await this.#destroy(id, handle)
    })
  }

  /**
   * Starts, stops or restarts a server; start on a running one and stop on a sleeping one change nothing.
   *
   * @throws BerthError 404, 502 where its sandbox does not start
   */
  async act(caller: Caller, id: string, action: ServerAction): Promise<ServerStatus> {
    this.row(caller, id)
    return this.#turns.run(id, async () => {
      if (action !== 'start') await this.#stop(this.row(caller, id))
      if (action !== 'stop') await this.#start(this.row(caller, id))
      return this.row(caller, id).status
    })
  }

  /**
   * The sandbox of a server, woken where it sleeps, and a function to call when the use of it is over.
   *
   * @throws BerthError 404, 502 where its sandbox does not start
   */
  async use(caller: Caller, id: string): Promise<{ row: ServerRow; sandbox: Sandbox; done: () => void }> {
    const row = this.row(caller, id)
    const done = this.#idle.use(id)
    try {
      const sandbox =
        this.#fleet.get(id) ?? (await this.#turns.run(id, async () => this.#start(this.row(caller, id))))
      return { row, sandbox, done }
    } catch (error) {
      done()
      throw error
    }
  }

  /** A server's files, whether it runs or not. */
  workspace(row: ServerRow): Workspace {
    return this.#compute.workspace(row.handle)
  }

  /** A call touched the server without needing its sandbox. */
  touch(id: string): void {
    if (this.#fleet.get(id)) this.#idle.touch(id)
  }

  /**
   * Ends what an earlier berth left behind, removes what no server owns, and brings up again every
   * server that ran when berth ended, a few at a time. No server starts before the first is done.
   */
  async recover(): Promise<void> {
    // A stop may come before the start has told of itself.
    if (this.#stopping) return
    await this.#afterReaping()
    const rows = this.#queries.select().from(servers).where(eq(servers.status, 'running')).all()
    const next = async (): Promise<void> => {
      for (let row = rows.pop(); row; row = rows.pop()) await this.#recoverOne(row)
    }
    await Promise.all(Array.from({ length: RECOVERY_WIDTH }, next))
  }

  /** Ends every process; the records stay as they are, so that the next start brings them up again. */
  async shutDown(): Promise<void> {
    this.#stopping = true
    this.#idle.stop()
    await this.#fleet.close()
    await this.meter.stop()
  }

  #find(id: string): ServerRow | undefined {
    return this.#queries.select().from(servers).where(eq(servers.id, id)).get()
  }

  #remove(id: string): void {
    this.#queries.delete(servers).where(eq(servers.id, id)).run()
  }

  /** The record is gone, and so the server is; a folder that resists is removed at the next start. */
  async #destroy(id: string, handle: Handle): Promise<void> {
    await this.#compute
      .destroy(handle)
      .catch((error) => this.#logger.error('a folder could not be removed', { serverId: id, error }))
  }

  /** Resolves when what an earlier berth left has been ended: the first to ask for it begins it. */
  #afterReaping(): Promise<void> {
    this.#reaped ??= this.#reap().catch((error) =>
      this.#logger.error('what an earlier start left could not be ended', { error }),
    )
    return this.#reaped
  }

  /** The server runs for the first time. */
  #announce({ id, accountId, tier, region }: ServerRow): void {
    this.#queries.transaction(() => {
      this.#queries.update(servers).set({ announced: true }).where(eq(servers.id, id)).run()
      this.#outbox.emit(accountId, 'server.created', { server_id: id, status: 'running', tier, region })
    })
  }

  async #reap(): Promise<void> {
    const known = this.#queries.select({ handle: servers.handle }).from(servers).all()
    const handles = known.map(({ handle }) => handle)
    // The folders to remove are listed at once: those of servers made from now on are not among them.
    // Removing them may take long, and nothing waits for it.
    this.#compute
      .sweep(handles)
      .catch((error) => this.#logger.error('folders without a server could not be removed', { error }))
    await this.#compute.reap(handles)
  }

  async #start(row: ServerRow): Promise<Sandbox> {
    await this.#afterReaping()
    try {
      const sandbox = await this.#fleet.start(row.id, row.handle, TIER_LIMITS[row.tier])
      if (row.status !== 'running') this.#setStatus(row.id, 'running')
      this.#idle.touch(row.id)
      return sandbox
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      this.#logger.error('a sandbox did not start', { serverId: row.id, error })
      throw new BerthError('compute_backend_error', `The server could not be started: ${error.message}`)
    }
  }

  async #stop(row: ServerRow): Promise<void> {
    this.#idle.forget(row.id)
    this.#fallAsleep(row.id)
    await this.#fleet.stop(row.id)
    this.meter.changed(row)
  }

  async #recoverOne(row: ServerRow): Promise<void> {
    await this.#turns.run(row.id, async () => {
      const now = this.#find(row.id)
      if (this.#stopping || now?.status !== 'running') return
      if (!now.announced) this.#announce(now)
      await this.#start(now).catch(() => this.#stopping || this.#markSleeping(row.id))
    })
  }

  async #sleepWhenIdle(serverId: string): Promise<void> {
    try {
      await this.#turns.run(serverId, async () => {
        const row = this.#find(serverId)
        if (row?.status === 'running') await this.#stop(row)
      })
    } catch (error) {
      this.#logger.error('an idle server could not be put to sleep', { serverId, error })
    }
  }

  #markSleeping(serverId: string): void {
    this.#idle.forget(serverId)
    this.#fallAsleep(serverId)
  }

  /** The record of a server that stops, for whatever reason. */
  #fallAsleep(serverId: string): void {
    this.#queries.transaction(() => {
      const row = this.#find(serverId)
      if (!row || row.status === 'sleeping') return
      this.#setStatus(serverId, 'sleeping')
      const { accountId, tier, region } = row
      this.#outbox.emit(accountId, 'server.stopped', {
        server_id: serverId,
        status: 'sleeping',
        tier,
        region,
      })
    })
  }

  #setStatus(serverId: string, status: ServerStatus): void {
    this.#queries.update(servers).set({ status }).where(eq(servers.id, serverId)).run()
  }
}
