import type { Compute, Handle, Limits, Sandbox } from '../../compute/driver.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { notFound } from '../../errors.ts'
import { type Caller, mayReachServer } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Database } from '../../storage/database.ts'
import { ReadCache } from '../../storage/read-cache.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Plans } from '../accounts/plans.ts'
import type { Outbox } from '../events/outbox.ts'
import { Admission } from './admission.ts'
import { ServerLifecycle } from './lifecycle.ts'
import { type ServerLifecycleListener, ServerLifecycleListeners } from './lifecycle-listener.ts'
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
  /** Whether a key names a server that is gone: where ids repeat, the next one must not become it. */
  isNamed: (id: string) => boolean
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
  /** Whether answers wait until storage is measured, so that they are the same in every run. */
  repeatable: boolean
}

/** Servers as callers see them: what their keys reach, what their plans allow, and what is asked of them. */
export class ServersService {
  readonly meter: StorageMeter
  readonly #records: ServerRecords
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #logger: Logger
  readonly #compute: Compute
  readonly #plans: Plans
  readonly #isNamed: (id: string) => boolean
  readonly #admission: Admission
  readonly #metering: Metering
  readonly #repeatable: boolean
  readonly #lifecycle: ServerLifecycle
  readonly #listeners = new ServerLifecycleListeners()
  readonly #lists: ReadCache<Server[]>
  readonly #rows: ReadCache<ServerRow | undefined>

  constructor({
    database,
    clock,
    ids,
    logger,
    compute,
    outbox,
    plans,
    metering,
    isNamed,
    idleTimeoutMs,
    repeatable,
  }: ServersDependencies) {
    this.#records = new ServerRecords({
      queries: database.queries,
      outbox,
      metering,
      listeners: this.#listeners,
    })
    this.#lists = new ReadCache(database.version)
    this.#rows = new ReadCache(database.version)
    this.#clock = clock
    this.#ids = ids
    this.#logger = logger
    this.#compute = compute
    this.#plans = plans
    this.#isNamed = isNamed
    this.#admission = new Admission(plans, (accountId) => this.count(accountId))
    this.#metering = metering
    this.#repeatable = repeatable
    this.meter = new StorageMeter(database.queries, compute, logger)
    this.#lifecycle = new ServerLifecycle({
      records: this.#records,
      meter: this.meter,
      clock,
      logger,
      compute,
      plans,
      metering,
      listeners: this.#listeners,
      idleTimeoutMs,
    })
  }

  /** Notifies `listener` when servers start, stop and are deleted. */
  subscribe(listener: ServerLifecycleListener): void {
    this.#listeners.add(listener)
  }

  /** The servers that the caller reaches, newest first. */
  list(caller: Caller): Server[] {
    const { accountId } = caller
    this.#metering.accrueIfStale(accountId)
    const all = this.#lists.get(accountId, () => this.#records.ofAccount(accountId).map(toServer))
    return caller.servers === null ? all : all.filter(({ id }) => mayReachServer(caller, id))
  }

  /** The same, the storage of each measured first where answers are to repeat. */
  listed(caller: Caller): Server[] | Promise<Server[]> {
    const servers = this.list(caller)
    if (!this.#repeatable) return servers
    const measured = servers.map(({ id }) => this.meter.exact(this.row(caller, id)))
    return Promise.all(measured).then(() => this.list(caller))
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
    const row = this.row(caller, id)
    await (this.#repeatable ? this.meter.exact(row) : this.meter.refresh(row, MEASURE_PATIENCE_MS))
    this.#metering.accrue(caller.accountId)
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
    const id = this.#ids.next(
      'srv',
      (taken) => this.#records.find(taken) !== undefined || this.#isNamed(taken),
    )
    return this.#lifecycle
      .turn(id, async (): Promise<CreatedServer> => {
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
          await this.#lifecycle.start(row, 'plan_limit')
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
    await this.#lifecycle.turn(id, () => this.#delete(this.row(caller, id)))
  }

  /**
   * Starts, stops or restarts a server; start on a running one and stop on a sleeping one change nothing.
   *
   * @throws BerthError 402 where the budget is used up, 404, 502 where its sandbox does not start
   */
  async act(caller: Caller, id: string, action: ServerAction): Promise<ServerStatus> {
    this.row(caller, id)
    return this.#lifecycle.turn(id, async () => {
      if (action !== 'start') await this.#lifecycle.stop(this.row(caller, id))
      if (action !== 'stop') await this.#lifecycle.start(this.row(caller, id))
      return this.row(caller, id).status
    })
  }

  /**
   * The sandbox of a server, woken where it sleeps, and a function to call when the use of it is over.
   *
   * @param signal fires when the use is over before it began: it wakes nothing then
   * @throws BerthError 402 where the budget is used up, 404, 502 where its sandbox does not start; the signal's reason
   */
  async use(
    caller: Caller,
    id: string,
    signal?: AbortSignal,
  ): Promise<{ row: ServerRow; sandbox: Sandbox; done: () => void }> {
    const row = this.row(caller, id)
    const done = this.#lifecycle.use(id)
    const start = async (): Promise<Sandbox> => {
      // A stop that came first in the turns has ended what this was for.
      signal?.throwIfAborted()
      return this.#lifecycle.start(this.row(caller, id))
    }
    try {
      const sandbox = this.#lifecycle.sandbox(id) ?? (await this.#lifecycle.turn(id, start))
      return { row, sandbox, done }
    } catch (error) {
      done()
      throw error
    }
  }

  /** Refuses what would cost where the budget is used up. @throws BerthError 402 */
  checkBudget({ accountId }: ServerRow): void {
    this.#metering.checkBudget(accountId)
  }

  /** A server's files, whether it runs or not. */
  workspace(row: ServerRow): Workspace {
    return this.#compute.workspace(row.handle)
  }

  /** What a server may use by its account's plan; its sandbox holds to what was so when it started. */
  limits(row: ServerRow): Limits {
    return this.#lifecycle.limits(row)
  }

  /** Returns the files of a server, running or not; undefined if there is no such server. */
  findWorkspace(id: string): Workspace | undefined {
    const row = this.find(id)
    return row && this.workspace(row)
  }

  /** Reports whether a server sleeps. */
  isSleeping(id: string): boolean {
    return this.find(id)?.status === 'sleeping'
  }

  /** One server, whosever it is. */
  find(id: string): ServerRow | undefined {
    return this.#records.find(id)
  }

  /** The sandbox of a server, where it runs. */
  sandbox(id: string): Sandbox | undefined {
    return this.#lifecycle.sandbox(id)
  }

  /** The server is in use until the returned function is called; this does not wake it. */
  hold(id: string): () => void {
    return this.#lifecycle.use(id)
  }

  /** Records the URL of what a server publishes; null if it publishes nothing. */
  setPublicUrl(id: string, publicUrl: string | null): void {
    this.#records.setPublicUrl(id, publicUrl)
  }

  /** Records that a build begins or ends on a server that runs. */
  setBuilding(id: string, building: boolean): void {
    this.#records.setBuilding(id, building)
  }

  /** How many servers an account has. */
  count(accountId: string): number {
    return this.#records.count(accountId)
  }

  /** Ends and removes the servers that an account has. */
  async deleteAll(accountId: string): Promise<void> {
    const rows = this.#records.ofAccount(accountId)
    await Promise.all(
      rows.map(({ id }) => this.#lifecycle.turn(id, () => this.#delete(this.#records.find(id)))),
    )
  }

  /** A call touched the server without needing its sandbox. */
  touch(id: string): void {
    this.#lifecycle.touch(id)
  }

  /** Brings up what ran when berth ended, after ending what it left behind. */
  recover(): Promise<void> {
    return this.#lifecycle.recover()
  }

  /** Has the files of a server measured soon, where it is there. */
  measure(serverId: string): void {
    const row = this.find(serverId)
    if (row) this.meter.changed(row)
  }

  /** Has every process of every server stand still, and its files with it, until the returned function is called. */
  pause(): Promise<() => void> {
    return this.#lifecycle.pause()
  }

  /** Resolves when the folders that no server owns are removed, where that is under way. */
  swept(): Promise<void> {
    return this.#lifecycle.swept()
  }

  /** Ends every process; the records stay as they are, so that the next start brings them up again. */
  shutDown(): Promise<void> {
    return this.#lifecycle.shutDown()
  }

  async #delete(row: ServerRow | undefined): Promise<void> {
    if (!row) return
    this.#records.remove(row)
    await this.#lifecycle.end(row.id)
    await this.#destroy(row.id, row.handle)
  }

  /** The record is gone, and so the server is; a folder that resists is removed at the next start. */
  async #destroy(id: string, handle: Handle): Promise<void> {
    await this.#compute
      .destroy(handle)
      .catch((error) => this.#logger.error('a folder could not be removed', { serverId: id, error }))
  }
}
