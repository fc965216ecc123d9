import { type Compute, computeOf, filesElsewhere, type Limits, wishOf } from '../../compute/compute.ts'
import type { Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { BerthError, notFound } from '../../errors.ts'
import { type Caller, mayReachServer } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PendingCounts } from '../../runtime/pending-counts.ts'
import { type Database, ReadCache } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import { limitsOf } from '../accounts/plan.ts'
import type { Plans } from '../accounts/plans.ts'
import type { TierName } from '../accounts/tiers.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import type { ImageChoice } from './images.ts'
import { ServerLifecycle } from './lifecycle.ts'
import { type ServerLifecycleListener, ServerLifecycleListeners } from './lifecycle-listener.ts'
import type {
  CreatedServer,
  Server,
  ServerAction,
  ServerCompute,
  ServerCreate,
  ServerStatus,
  ServerSystem,
  ServerUpdate,
} from './model.ts'
import { ServerNetworks, type ServerNetworksDependencies } from './network.ts'
import { ServerRecords } from './records.ts'
import { StorageMeter } from './storage-meter.ts'
import { filesKeyOf, type ServerRow, toServer } from './table.ts'

/** Milliseconds that a request for one server waits for a new measurement of its storage. */
const MEASURE_TIMEOUT_MS = 50

/** Dependencies of the servers. */
interface ServersDependencies {
  database: Database
  clock: Clock
  logger: Logger
  compute: Compute
  images: ImageChoice
  outbox: Outbox
  plans: Plans
  metering: Metering
  changes: Changes
  /** What servers may reach. */
  network: Pick<ServerNetworksDependencies, 'outbound' | 'machinePorts'>
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
  /** Whether responses wait for measurements of storage, so they are the same in every run. */
  repeatable: boolean
}

/** Default parameters of a server. */
const DEFAULTS: Required<ServerCreate> = { task: '', tier: 'small', region: 'us-east' }

/** Manages servers on behalf of callers, within the scopes of their keys and the plans of their accounts. */
export class ServersService {
  readonly meter: StorageMeter
  readonly networks: ServerNetworks
  /** The records, for code that works for no caller. */
  readonly records: Pick<
    ServerRecords,
    'find' | 'placed' | 'setPublicUrl' | 'setBuilding' | 'noteDeleted' | 'forgetDeleted' | 'deleted' | 'move'
  >
  /** The sandboxes, for code that works for no caller. */
  readonly lifecycle: Pick<
    ServerLifecycle,
    | 'sandbox'
    | 'hold'
    | 'touch'
    | 'limits'
    | 'lastUsedAt'
    | 'standStill'
    | 'pause'
    | 'swept'
    | 'kept'
    | 'turn'
    | 'start'
    | 'stop'
  >
  readonly #records: ServerRecords
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #compute: Compute
  /** Decides with which system servers are made. */
  readonly images: ImageChoice
  readonly #plans: Plans
  readonly #admission: Admission
  readonly #metering: Metering
  readonly #repeatable: boolean
  readonly #lifecycle: ServerLifecycle
  readonly #listeners = new ServerLifecycleListeners()
  readonly #lists: ReadCache<Server[]>
  readonly #rows: ReadCache<ServerRow | undefined>

  constructor(dependencies: ServersDependencies) {
    const { database, clock, logger, compute, plans, metering, changes } = dependencies
    const { network, repeatable } = dependencies
    this.#records = new ServerRecords({
      ...dependencies,
      queries: database.queries,
      listeners: this.#listeners,
    })
    const version = (): number => database.version() + this.#records.revision
    this.#lists = new ReadCache(version)
    this.#rows = new ReadCache(version)
    this.#clock = clock
    this.#logger = logger
    this.#compute = compute
    this.images = dependencies.images
    this.#plans = plans
    this.#admission = new Admission(plans, (accountId) => this.#records.count(accountId))
    this.#metering = metering
    this.#repeatable = repeatable
    this.meter = new StorageMeter({ ...dependencies, queries: database.queries, compute, changes, logger })
    this.networks = new ServerNetworks({ ...network, records: this.#records, logger })
    this.#lifecycle = new ServerLifecycle({
      ...dependencies,
      queries: database.queries,
      records: this.#records,
      networks: this.networks,
      meter: this.meter,
      listeners: this.#listeners,
    })
    this.records = this.#records
    this.lifecycle = this.#lifecycle
    sleepAtCap({ metering, records: this.#records, lifecycle: this.#lifecycle })
  }

  /** Notifies `listener` when servers start, stop and are deleted. */
  subscribe(listener: ServerLifecycleListener): void {
    this.#listeners.add(listener)
  }

  /** Returns the servers that the caller reaches, newest first. */
  list(caller: Caller): Server[] {
    const { accountId } = caller
    this.#metering.accrueIfStale(accountId)
    const all = this.#lists.get(accountId, () => this.#records.listByAccount(accountId).map(toServer))
    return caller.servers === null ? all : all.filter(({ id }) => mayReachServer(caller, id))
  }

  /** Returns the servers that the caller reaches, newest first. In a deterministic run, measures the storage of each first. */
  listMeasured(caller: Caller): Server[] | Promise<Server[]> {
    const servers = this.list(caller)
    if (!this.#repeatable) return servers
    const measured = servers.map(({ id }) => this.meter.exact(this.getRow(caller, id)))
    return Promise.all(measured).then(() => this.list(caller))
  }

  /** Reports whether an account owns a server. */
  owns(accountId: string, id: string): boolean {
    return this.#records.ofAccountById(accountId, id) !== undefined
  }

  /**
   * Returns the record of a server that the caller reaches.
   *
   * @throws BerthError 404
   */
  getRow(caller: Caller, id: string): ServerRow {
    const { accountId } = caller
    const row = mayReachServer(caller, id)
      ? this.#rows.get(`${accountId} ${id}`, () => this.#records.ofAccountById(accountId, id))
      : undefined
    if (!row) throw notFound(`The server "${id}"`)
    return row
  }

  /**
   * Returns a server with its storage as it was measured last.
   *
   * @throws BerthError 404
   */
  known(caller: Caller, id: string): Server {
    this.getRow(caller, id)
    this.#metering.accrueIfStale(caller.accountId)
    return toServer(this.getRow(caller, id))
  }

  /**
   * Returns a server, with its storage measured again if that is quick.
   *
   * @throws BerthError 404
   */
  async get(caller: Caller, id: string): Promise<Server> {
    const row = this.getRow(caller, id)
    await (this.#repeatable ? this.meter.exact(row) : this.meter.refresh(row, MEASURE_TIMEOUT_MS))
    this.#metering.accrueIfPossible(caller.accountId)
    return toServer(this.getRow(caller, id))
  }

  /**
   * Returns where a server runs, as far as that is known without asking an engine.
   *
   * @throws BerthError 404
   */
  compute(caller: Caller, id: string): ServerCompute {
    const { handle, status } = this.getRow(caller, id)
    const there = computeOf(handle)
    if (there !== this.images.compute) {
      const { message: cause } = filesElsewhere(handle, this.images.compute)
      return { compute: there, ...wishOf(handle), node: null, state: 'unreachable', cause }
    }
    const { image, root, node, cause } = this.#compute.driver.placement(handle)
    const state = cause === null ? status : 'unreachable'
    return { compute: this.images.compute, image, root, node, state, cause }
  }

  /**
   * Provisions a server. It runs when this resolves.
   *
   * @param system what its system is; the default of its tier without it
   * @param fill puts files into its workspace before it starts; if it fails, nothing is left
   * @throws what `fill` throws; BerthError 400 for a system that is not permitted, 403 if the plan or the budget does not allow it, 502 if its sandbox does not start
   */
  async create(
    caller: Caller,
    params: ServerCreate,
    system: ServerSystem = {},
    fill?: (files: Workspace, limits: Limits) => Promise<void>,
  ): Promise<CreatedServer> {
    const chosen = { ...DEFAULTS, ...params }
    const { tier } = chosen
    const wish = this.images.choose(tier, system)
    this.#metering.checkBudget(caller.accountId, 'plan_limit')
    const counted = this.#admission.admit(caller.accountId, tier)
    try {
      const limits = limitsOf(this.#plans.of(caller.accountId).plan, tier)
      const server = this.#compute.provision(limits, wish)
      const { id } = server
      return await this.#lifecycle.turn(id, async (): Promise<CreatedServer> => {
        const handle = await server.create()
        const key = filesKeyOf(id, handle)
        try {
          if (fill !== undefined) {
            // Until the server has a record, a start removes the files.
            this.#records.noteDeleted(key, handle)
            await fill(this.#compute.workspace(handle), limits)
          }
          // Throws if the account was deleted meanwhile.
          this.#plans.of(caller.accountId)
          const row = this.#records.add({
            id,
            accountId: caller.accountId,
            ...chosen,
            status: 'running',
            handle,
            createdAt: this.#clock.now(),
          })
          counted()
          await this.#lifecycle.start(row, { overBudget: 'plan_limit', begin: () => server.start() })
          this.#records.announce(row)
          this.#compute.driver.keep(handle)
          if (fill !== undefined) this.#records.forgetDeleted(key)
        } catch (error) {
          this.#records.drop(id)
          const isRemoved = await this.#remove(id, () => server.discard())
          if (isRemoved && fill !== undefined) this.#records.forgetDeleted(key)
          throw error
        }
        return { id, url: null, status: 'running', tier }
      })
    } finally {
      counted()
    }
  }

  /**
   * Changes label or region.
   *
   * @throws BerthError 404
   */
  async update(caller: Caller, id: string, changes: ServerUpdate): Promise<Server> {
    this.getRow(caller, id)
    if (Object.keys(changes).length > 0) this.#records.change(id, changes)
    return this.get(caller, id)
  }

  /**
   * Deletes a server with everything on it.
   *
   * @throws BerthError 404
   */
  async delete(caller: Caller, id: string): Promise<void> {
    // Checked before the turn: the time of a refusal must not reveal that the server exists.
    this.getRow(caller, id)
    await this.#lifecycle.turn(id, () => this.#delete(this.getRow(caller, id)))
  }

  /**
   * Starts, stops or restarts a server. Starting a running server and stopping a sleeping one do nothing.
   *
   * @throws BerthError 402 if the budget is used up, 404, 502 if its sandbox does not start
   */
  async act(caller: Caller, id: string, action: ServerAction): Promise<ServerStatus> {
    this.getRow(caller, id)
    return this.#lifecycle.turn(id, async () => {
      if (action !== 'stop') this.#lifecycle.touch(id)
      if (action !== 'start') await this.#lifecycle.stop(this.getRow(caller, id))
      if (action !== 'stop') await this.#lifecycle.start(this.getRow(caller, id))
      return this.getRow(caller, id).status
    })
  }

  /**
   * Returns the sandbox of a server, which is started if it sleeps, and a function to call after the use.
   *
   * @param signal prevents the start if it aborts before it
   * @throws BerthError 402 if the budget is used up, 404, 502 if its sandbox does not start; the signal's reason
   */
  async use(
    caller: Caller,
    id: string,
    signal?: AbortSignal,
  ): Promise<{ row: ServerRow; sandbox: Sandbox; done: () => void }> {
    const row = this.getRow(caller, id)
    const done = this.#lifecycle.hold(id)
    const start = async (): Promise<Sandbox> => {
      // An earlier stop in the queue may have aborted this use.
      signal?.throwIfAborted()
      return this.#lifecycle.start(this.getRow(caller, id))
    }
    try {
      const running = this.#lifecycle.sandbox(id)
      if (running !== undefined) await this.#checkFiles(row)
      const sandbox = running ?? (await this.#lifecycle.turn(id, start))
      return { row, sandbox, done }
    } catch (error) {
      done()
      throw error
    }
  }

  /**
   * Refuses work that costs if the budget is used up.
   *
   * @throws BerthError 402
   */
  checkBudget({ accountId }: ServerRow): void {
    this.#metering.checkBudget(accountId)
  }

  /**
   * Checks that no server's files are gone.
   *
   * @throws ComputeError
   */
  async checkAllFiles(): Promise<void> {
    for (const handle of this.#records.handles()) await this.#compute.driver.checkFiles(handle)
  }

  /** Returns a server's files, running or not. */
  workspace(row: ServerRow): Workspace {
    return this.#compute.workspace(row.handle)
  }

  /** Removes what is in a server's caches, to make room. */
  emptyCaches(row: ServerRow): Promise<void> {
    return this.#compute.driver.emptyCaches(row.handle)
  }

  /** Returns the number of an account's servers. */
  count(accountId: string): number {
    return this.#records.count(accountId)
  }

  /** Deletes all servers of an account. */
  async deleteAll(accountId: string): Promise<void> {
    const rows = this.#records.listByAccount(accountId)
    await Promise.all(
      rows.map(({ id }) => this.#lifecycle.turn(id, () => this.#delete(this.#records.find(id)))),
    )
  }

  /** Lists what earlier berths left. Nothing of this berth may be made before. */
  takeStock(): void {
    this.#lifecycle.takeStock()
  }

  /** Ends the remains of an earlier berth, and starts the servers that ran when it ended. */
  async recover(): Promise<void> {
    await this.#lifecycle.recover()
    this.#compute.prepare(limitsOf(this.#plans.base, DEFAULTS.tier), this.images.byDefault(DEFAULTS.tier))
  }

  /** Measures the files of a server soon, if it exists. */
  measure(serverId: string): void {
    const row = this.#records.find(serverId)
    if (row) this.meter.changed(row)
  }

  /** Ends every process. The records stay, so the next start brings the servers up again. */
  async shutDown(): Promise<void> {
    await Promise.all([this.#compute.close(), this.#lifecycle.shutDown()])
  }

  /** @throws BerthError 502 if the files of a server are gone */
  async #checkFiles({ handle }: ServerRow): Promise<void> {
    try {
      await this.#compute.driver.checkFiles(handle)
    } catch (error) {
      throw new BerthError('compute_backend_error', messageOf(error), { cause: error })
    }
  }

  async #delete(row: ServerRow | undefined): Promise<void> {
    if (!row) return
    this.#records.remove(row)
    await this.#lifecycle.end(row.id)
    const isRemoved = await this.#remove(row.id, () => this.#compute.driver.destroy(row.handle))
    if (isRemoved) this.#records.forgetDeleted(row.id)
  }

  /**
   * Removes the files of a server whose record is deleted already. Those that cannot be removed now are removed at the next
   * start.
   *
   * @returns whether they are removed
   */
  async #remove(id: string, remove: () => Promise<void>): Promise<boolean> {
    try {
      await remove()
      return true
    } catch (error) {
      this.#logger.error('a directory could not be removed', { serverId: id, error })
      return false
    }
  }
}

/** What puts servers to sleep when a budget is used up. */
interface SleepAtCapParts {
  metering: Metering
  records: ServerRecords
  lifecycle: ServerLifecycle
}

/** From now on stops everything of an account that costs credits as soon as its budget is used up. */
function sleepAtCap({ metering, records, lifecycle }: SleepAtCapParts): void {
  const sleep = async (accountId: string, id: string): Promise<void> => {
    const row = records.find(id)
    // The cap may have been raised, or another month begun, before the server's turn came.
    if (row && row.status !== 'sleeping' && metering.isCapped(accountId)) await lifecycle.stop(row)
  }
  metering.onCapReached(async (accountId) => {
    const ids = records.listByAccount(accountId).map(({ id }) => id)
    await Promise.all(ids.map((id) => lifecycle.turn(id, () => sleep(accountId, id))))
  })
}

/**
 * Decides whether an account's plan allows another server. Servers that are starting count too, so parallel calls
 * cannot exceed the limit together.
 */
export class Admission {
  readonly #plans: Plans
  readonly #count: (accountId: string) => number
  readonly #comingUp = new PendingCounts()

  /**
   * @param count returns the number of an account's recorded servers
   */
  constructor(plans: Plans, count: (accountId: string) => number) {
    this.#plans = plans
    this.#count = count
  }

  /**
   * Admits another server of a tier.
   *
   * @returns a function to call when the server is recorded or has failed; further calls do nothing
   * @throws BerthError 403 `plan_limit`
   */
  admit(accountId: string, tier: TierName): () => void {
    const { plan } = this.#plans.of(accountId)
    if (!plan.tiers.includes(tier)) {
      const allowed = plan.tiers.length === 0 ? 'none' : plan.tiers.join(', ')
      throw refusal(
        `The account's plan does not allow the tier ${tier}. Choose one that it allows (${allowed}), or add it to "tiers" of the plan.`,
      )
    }
    if (this.#comingUp.of(accountId) + this.#count(accountId) >= plan.servers) {
      throw refusal(
        `The account has the ${plan.servers} servers that its plan allows. Delete one, or raise "servers" of the plan.`,
      )
    }
    return this.#comingUp.add(accountId)
  }
}

const refusal = (sentence: string): BerthError => new BerthError('plan_limit', sentence)
