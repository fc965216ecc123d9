import { type Caller, mayReachServer } from '../../accounts/caller.ts'
import type { Metering } from '../../accounts/metering.ts'
import { limitsOf } from '../../accounts/plan.ts'
import type { Plans } from '../../accounts/plans.ts'
import { type Compute, ComputeError, type Handle, type Limits, type Sandbox } from '../../compute/driver.ts'
import { Fleet } from '../../compute/fleet.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { BerthError, type ErrorCode, notFound } from '../../errors.ts'
import type { Outbox } from '../../events/outbox.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { Database } from '../../storage/database.ts'
import { ReadCache } from '../../storage/read-cache.ts'
import { Admission } from './admission.ts'
import { IdleWatch } from './idle.ts'
import type {
  CreatedServer,
  Server,
  ServerAction,
  ServerCreate,
  ServerStatus,
  ServerUpdate,
} from './model.ts'
import { ServerRecords } from './records.ts'
import { StorageMeter } from './storage-meter.ts'
import { type ServerRow, toServer } from './table.ts'

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
  plans: Plans
  metering: Metering
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
}

/**
 * Servers: their records and the sandboxes behind them. Whatever changes whether a server runs goes
 * through one queue per server, so that a stop and a start never cross.
 */
export class ServersService {
  readonly meter: StorageMeter
  readonly #records: ServerRecords
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #logger: Logger
  readonly #compute: Compute
  readonly #plans: Plans
  readonly #admission: Admission
  readonly #metering: Metering
  readonly #fleet: Fleet
  readonly #idle: IdleWatch
  readonly #lists: ReadCache<Server[]>
  readonly #rows: ReadCache<ServerRow | undefined>
  readonly #turns = new KeyedMutex()
  #reaped: Promise<void> | undefined
  #stopping = false

  constructor({
    database,
    clock,
    ids,
    logger,
    compute,
    outbox,
    plans,
    metering,
    idleTimeoutMs,
  }: ServersDependencies) {
    this.#records = new ServerRecords({ queries: database.queries, outbox, metering })
    this.#lists = new ReadCache(database.version)
    this.#rows = new ReadCache(database.version)
    this.#clock = clock
    this.#ids = ids
    this.#logger = logger
    this.#compute = compute
    this.#plans = plans
    this.#admission = new Admission(plans, (accountId) => this.count(accountId))
    this.#metering = metering
    metering.whenCapped((accountId) => this.#sleepAtCap(accountId))
    this.meter = new StorageMeter(database.queries, compute, logger)
    this.#fleet = new Fleet(compute, logger, (serverId) => this.#markSleeping(serverId))
    this.#idle = new IdleWatch(clock, idleTimeoutMs, (serverId) => this.#sleepWhenIdle(serverId))
  }

  /** The servers that the caller reaches, newest first. */
  list(caller: Caller): Server[] {
    const { accountId } = caller
    this.#metering.catchUp(accountId)
    const all = this.#lists.get(accountId, () => this.#records.ofAccount(accountId).map(toServer))
    return caller.servers === null ? all : all.filter(({ id }) => mayReachServer(caller, id))
  }

  /** Whether an account has a server of this id. */
  owns(accountId: string, id: string): boolean {
    return this.#records.ofAccountById(accountId, id) !== undefined
  }

  /** The record of one of the servers that the caller reaches. @throws BerthError 404 */
  row(caller: Caller, id: string): ServerRow {
    const { accountId } = caller
    const row = mayReachServer(caller, id)
      ? this.#rows.get(`${accountId} ${id}`, () => this.#records.ofAccountById(accountId, id))
      : undefined
    if (!row) throw notFound(`The server "${id}"`)
    return row
  }

  /** One server, its storage measured afresh where that is quickly done. @throws BerthError 404 */
  async get(caller: Caller, id: string): Promise<Server> {
    await this.meter.refresh(this.row(caller, id), MEASURE_PATIENCE_MS)
    this.#metering.settle(caller.accountId)
    return toServer(this.row(caller, id))
  }

  /**
   * Provisions a server: it runs when this resolves.
   *
   * @throws BerthError 403 where the plan or the budget does not allow it, 502 where its sandbox does not start
   */
  async create(
    caller: Caller,
    { task = '', tier = 'small', region = 'us-east' }: ServerCreate,
  ): Promise<CreatedServer> {
    this.#metering.checkBudget(caller.accountId, 'plan_limit')
    const counted = this.#admission.admit(caller.accountId, tier)
    const id = this.#ids.next('srv', (taken) => this.#records.find(taken) !== undefined)
    return this.#turns
      .run(id, async (): Promise<CreatedServer> => {
        const handle = await this.#compute.create(id)
        try {
          // Throws where the account has been removed meanwhile.
          this.#plans.of(caller.accountId)
          const row = this.#records.add({
            id,
            accountId: caller.accountId,
            task,
            tier,
            region,
            status: 'running',
            handle,
            createdAt: this.#clock.now(),
          })
          counted()
          await this.#start(row, 'plan_limit')
          this.#records.announce(row)
        } catch (error) {
          this.#records.drop(id)
          await this.#destroy(id, handle)
          throw error
        }
        return { id, url: null, status: 'running', tier }
      })
      .finally(counted)
  }

  /** Changes label or region. @throws BerthError 404 */
  async update(caller: Caller, id: string, changes: ServerUpdate): Promise<Server> {
    this.row(caller, id)
    if (Object.keys(changes).length > 0) this.#records.change(id, changes)
    return this.get(caller, id)
  }

  /** Ends and removes a server with everything in it. @throws BerthError 404 */
  async delete(caller: Caller, id: string): Promise<void> {
    // At once: how long a refusal takes must not tell that there is such a server.
    this.row(caller, id)
    await this.#turns.run(id, () => this.#delete(this.row(caller, id)))
  }

  /**
   * Starts, stops or restarts a server; start on a running one and stop on a sleeping one change nothing.
   *
   * @throws BerthError 402 where the budget is used up, 404, 502 where its sandbox does not start
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
   * @throws BerthError 402 where the budget is used up, 404, 502 where its sandbox does not start
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

  /** What a server may use by its account's plan; its sandbox holds to what was so when it started. */
  limits({ accountId, tier }: ServerRow): Limits {
    return limitsOf(this.#plans.of(accountId).plan, tier)
  }

  /** How many servers an account has. */
  count(accountId: string): number {
    return this.#records.count(accountId)
  }

  /** Ends and removes the servers that an account has. */
  async deleteAll(accountId: string): Promise<void> {
    const rows = this.#records.ofAccount(accountId)
    await Promise.all(rows.map(({ id }) => this.#turns.run(id, () => this.#delete(this.#records.find(id)))))
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
    const rows = this.#records.running()
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
    this.#metering.close()
    await this.meter.stop()
  }

  async #delete(row: ServerRow | undefined): Promise<void> {
    if (!row) return
    this.#records.remove(row)
    this.#idle.forget(row.id)
    await this.#fleet.stop(row.id)
    this.meter.forget(row.id)
    await this.#destroy(row.id, row.handle)
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

  async #reap(): Promise<void> {
    const handles = this.#records.handles()
    // The folders to remove are listed at once: those of servers made from now on are not among them.
    // Removing them may take long, and nothing waits for it.
    this.#compute
      .sweep(handles)
      .catch((error) => this.#logger.error('folders without a server could not be removed', { error }))
    await this.#compute.reap(handles)
  }

  /** @param overBudget the code of the failure where the budget is used up */
  async #start(row: ServerRow, overBudget: ErrorCode = 'budget_exceeded'): Promise<Sandbox> {
    this.#metering.checkBudget(row.accountId, overBudget)
    await this.#afterReaping()
    try {
      const sandbox = await this.#fleet.start(row.id, row.handle, this.limits(row))
      try {
        // It may have been used up while the sandbox came up.
        this.#metering.checkBudget(row.accountId, overBudget)
        this.#records.runs(row)
      } catch (error) {
        await this.#fleet.stop(row.id)
        throw error
      }
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
    this.#records.sleeps(row.id)
    await this.#fleet.stop(row.id)
    this.meter.changed(row)
  }

  async #recoverOne(row: ServerRow): Promise<void> {
    await this.#turns.run(row.id, async () => {
      const now = this.#records.find(row.id)
      if (this.#stopping || now?.status !== 'running') return
      if (!now.announced) this.#records.announce(now)
      await this.#start(now).catch(() => this.#stopping || this.#markSleeping(row.id))
    })
  }

  async #sleepWhenIdle(serverId: string): Promise<void> {
    try {
      await this.#turns.run(serverId, async () => {
        const row = this.#records.find(serverId)
        if (row?.status === 'running') await this.#stop(row)
      })
    } catch (error) {
      this.#logger.error('an idle server could not be put to sleep', { serverId, error })
    }
  }

  /** The budget of an account is used up: whatever costs ends. */
  async #sleepAtCap(accountId: string): Promise<void> {
    const sleep = async (id: string): Promise<void> => {
      const row = this.#records.find(id)
      if (row && row.status !== 'sleeping' && this.#metering.isCapped(accountId)) await this.#stop(row)
    }
    await Promise.all(
      this.#records.ofAccount(accountId).map(({ id }) => this.#turns.run(id, () => sleep(id))),
    )
  }

  #markSleeping(serverId: string): void {
    this.#idle.forget(serverId)
    this.#records.sleeps(serverId)
  }
}
