import { type Compute, ComputeError, type Limits, type Sandbox } from '../../compute/driver.ts'
import { SandboxRegistry } from '../../compute/sandbox-registry.ts'
import { BerthError, type ErrorCode } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { Metering } from '../accounts/metering.ts'
import { limitsOf } from '../accounts/plan.ts'
import type { Plans } from '../accounts/plans.ts'
import { IdleWatch } from './idle.ts'
import type { ServerLifecycleListeners } from './lifecycle-listener.ts'
import type { ServerRecords } from './records.ts'
import type { StorageMeter } from './storage-meter.ts'
import type { ServerRow } from './table.ts'

/** How many servers come up at a time when berth starts. */
const RECOVERY_WIDTH = 8

/** What the lifecycle needs. */
interface LifecycleDependencies {
  records: ServerRecords
  meter: StorageMeter
  clock: Clock
  logger: Logger
  compute: Compute
  plans: Plans
  metering: Metering
  /** Notified when servers start and stop. */
  listeners: ServerLifecycleListeners
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
}

/**
 * When servers run: the sandboxes behind the records, and whatever starts and stops them, be it a
 * caller, idleness, the budget, the sandbox itself or the start and end of berth. All of it goes
 * through one queue per server, so that a stop and a start never cross.
 */
export class ServerLifecycle {
  readonly #records: ServerRecords
  readonly #meter: StorageMeter
  readonly #logger: Logger
  readonly #compute: Compute
  readonly #plans: Plans
  readonly #metering: Metering
  readonly #listeners: ServerLifecycleListeners
  readonly #sandboxes: SandboxRegistry
  readonly #idle: IdleWatch
  readonly #turns = new KeyedMutex()
  #sweeping: Promise<void> = Promise.resolve()
  #reaped: Promise<void> | undefined
  #stopping = false

  constructor({
    records,
    meter,
    clock,
    logger,
    compute,
    plans,
    metering,
    listeners,
    idleTimeoutMs,
  }: LifecycleDependencies) {
    this.#records = records
    this.#meter = meter
    this.#logger = logger
    this.#compute = compute
    this.#plans = plans
    this.#metering = metering
    this.#listeners = listeners
    metering.onCapReached((accountId) => this.#sleepAtCap(accountId))
    this.#sandboxes = new SandboxRegistry(compute, logger, (serverId) => this.#markSleeping(serverId))
    this.#idle = new IdleWatch(clock, idleTimeoutMs, (serverId) => this.#sleepWhenIdle(serverId))
  }

  /** Does something that no start or stop of the server may cross. */
  turn<T>(serverId: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(serverId, work)
  }

  /** The sandbox of a server, where it runs. */
  sandbox(serverId: string): Sandbox | undefined {
    return this.#sandboxes.get(serverId)
  }

  /** The server is in use until the returned function is called. */
  use(serverId: string): () => void {
    return this.#idle.use(serverId)
  }

  /** A call touched the server without needing its sandbox. */
  touch(serverId: string): void {
    if (this.#sandboxes.get(serverId)) this.#idle.touch(serverId)
  }

  /** What a server may use by its account's plan; its sandbox holds to what was so when it started. */
  limits({ accountId, tier }: ServerRow): Limits {
    return limitsOf(this.#plans.of(accountId).plan, tier)
  }

  /**
   * Starts a server in its turn; one that runs is left as it is.
   *
   * @param overBudget the code of the failure where the budget is used up
   * @throws BerthError where it is, 502 where the sandbox does not start, 503 where berth stops meanwhile
   */
  async start(row: ServerRow, overBudget: ErrorCode = 'budget_exceeded'): Promise<Sandbox> {
    this.#metering.checkBudget(row.accountId, overBudget)
    await this.#afterReaping()
    try {
      const present = this.#sandboxes.get(row.id)
      const sandbox = await this.#sandboxes.start(row.id, row.handle, this.limits(row))
      try {
        // It may have been used up while the sandbox came up.
        this.#metering.checkBudget(row.accountId, overBudget)
        this.#records.markRunning(row)
      } catch (error) {
        await this.#sandboxes.stop(row.id)
        throw error
      }
      this.#idle.touch(row.id)
      if (present === undefined) this.#listeners.serverStarted(row.id)
      return sandbox
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      if (this.#stopping) {
        throw new BerthError(
          'service_unavailable',
          'berth is stopping or being reset. Try again when it is ready.',
        )
      }
      this.#logger.error('a sandbox did not start', { serverId: row.id, error })
      throw new BerthError('compute_backend_error', `The server could not be started: ${error.message}`)
    }
  }

  /** Stops a server in its turn, and its record says so. */
  async stop(row: ServerRow): Promise<void> {
    this.#idle.forget(row.id)
    this.#listeners.serverStopping(row.id)
    this.#records.markSleeping(row.id)
    await this.#sandboxes.stop(row.id)
    this.#meter.changed(row)
  }

  /** Ends the processes of a server whose record is gone. */
  async end(serverId: string): Promise<void> {
    this.#idle.forget(serverId)
    this.#listeners.serverStopping(serverId)
    await this.#sandboxes.stop(serverId)
    await this.#listeners.serverDeleted(serverId)
    this.#meter.forget(serverId)
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

  /** Has every process of every server stand still until the returned function is called. */
  pause(): Promise<() => void> {
    return this.#sandboxes.pause()
  }

  /** Resolves when the folders that no server owns are removed, where that is under way. */
  async swept(): Promise<void> {
    await this.#reaped
    await this.#sweeping
  }

  /** Ends every process; the records stay as they are, so that the next start brings them up again. */
  async shutDown(): Promise<void> {
    this.#stopping = true
    this.#idle.stop()
    await this.#sandboxes.close()
    this.#metering.close()
    await this.#meter.stop()
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
    this.#sweeping = this.#compute
      .sweep(handles)
      .catch((error) => this.#logger.error('folders without a server could not be removed', { error }))
    await this.#compute.reap(handles)
  }

  async #recoverOne(row: ServerRow): Promise<void> {
    await this.#turns.run(row.id, async () => {
      const now = this.#records.find(row.id)
      if (this.#stopping || !now || now.status === 'sleeping') return
      if (!now.announced) this.#records.announce(now)
      await this.start(now).catch(() => this.#stopping || this.#markSleeping(row.id))
    })
  }

  async #sleepWhenIdle(serverId: string): Promise<void> {
    try {
      await this.#turns.run(serverId, async () => {
        const row = this.#records.find(serverId)
        if (row && row.status !== 'sleeping') await this.stop(row)
      })
    } catch (error) {
      this.#logger.error('an idle server could not be put to sleep', { serverId, error })
    }
  }

  /** The budget of an account is used up: whatever costs ends. */
  async #sleepAtCap(accountId: string): Promise<void> {
    const sleep = async (id: string): Promise<void> => {
      const row = this.#records.find(id)
      if (row && row.status !== 'sleeping' && this.#metering.isCapped(accountId)) await this.stop(row)
    }
    await Promise.all(
      this.#records.ofAccount(accountId).map(({ id }) => this.#turns.run(id, () => sleep(id))),
    )
  }

  #markSleeping(serverId: string): void {
    this.#idle.forget(serverId)
    this.#listeners.serverStopping(serverId)
    this.#records.markSleeping(serverId)
  }
}
