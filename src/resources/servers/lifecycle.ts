import { type Compute, type Limits, type Remains, SandboxRegistry } from '../../compute/compute.ts'
import { ComputeError, type Sandbox } from '../../compute/sandbox.ts'
import { BerthError, type ErrorCode } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { orAborted } from '../../runtime/wait.ts'
import type { Queries } from '../../storage/database.ts'
import { LastUse } from '../accounts/last-use.ts'
import type { Metering } from '../accounts/metering.ts'
import { limitsOf } from '../accounts/plan.ts'
import type { Plans } from '../accounts/plans.ts'
import { IdleWatch } from './idle.ts'
import type { ServerLifecycleListeners } from './lifecycle-listener.ts'
import type { ServerNetworks } from './network.ts'
import type { ServerRecords } from './records.ts'
import type { StorageMeter } from './storage-meter.ts'
import { type ServerRow, servers } from './table.ts'

/** Number of servers that start in parallel when berth starts. */
const RECOVERY_WIDTH = 8

/** Dependencies of the lifecycle. */
interface LifecycleDependencies {
  queries: Queries
  records: ServerRecords
  networks: ServerNetworks
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

/** Milliseconds between attempts to record that servers have stopped, where that could not be written. */
const RETRY_MS = 1_000

/** Milliseconds that a stop waits for the size of files which are measured for the last time. */
const LAST_LOOK_MS = 1_000

/** What earlier berths left, with the servers that they had deleted. */
type Stock = Remains & { readonly deleted: readonly Pick<ServerRow, 'id' | 'handle'>[] }

/**
 * Starts and stops the sandboxes of servers, on behalf of callers, idleness, the budget, the sandbox itself, and the
 * start and end of berth. Each server has one queue, so a stop and a start never overlap.
 */
export class ServerLifecycle {
  readonly #records: ServerRecords
  readonly #networks: ServerNetworks
  readonly #meter: StorageMeter
  readonly #logger: Logger
  readonly #compute: Compute
  readonly #plans: Plans
  readonly #metering: Metering
  readonly #listeners: ServerLifecycleListeners
  readonly #sandboxes: SandboxRegistry
  readonly #clock: Clock
  readonly #idle: IdleWatch
  readonly #lastUse: LastUse
  readonly #turns = new KeyedMutex()
  /** Servers that have stopped, which could not be recorded yet. */
  readonly #unwritten = new Set<string>()
  #retry: ReturnType<typeof setInterval> | undefined
  /** The turns in which work is under way. */
  readonly #working = new Set<Promise<unknown>>()
  /** Resolves when work may begin again in turns; null while it may. */
  #stillness: Promise<void> | null = null
  #remains: Stock | undefined
  #sweeping: Promise<void> = Promise.resolve()
  #reaped: Promise<void> | undefined
  #stopping = false

  constructor({
    queries,
    records,
    networks,
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
    this.#networks = networks
    this.#meter = meter
    this.#logger = logger
    this.#compute = compute
    this.#plans = plans
    this.#metering = metering
    this.#listeners = listeners
    this.#sandboxes = new SandboxRegistry(logger, (serverId) => this.#markSleeping(serverId))
    this.#clock = clock
    this.#lastUse = new LastUse({ queries, clock, logger, table: servers })
    this.#idle = new IdleWatch(clock, idleTimeoutMs, (serverId) => this.#sleepWhenIdle(serverId))
  }

  /** Runs work in the server's turn, without any overlapping start or stop. */
  turn<T>(serverId: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(serverId, () => this.#work(work))
  }

  /** Returns the sandbox of a server, if it runs. */
  sandbox(serverId: string): Sandbox | undefined {
    return this.#sandboxes.get(serverId)
  }

  /** Marks the server as used until the returned function is called, without starting it. */
  hold(serverId: string): () => void {
    this.#noteUse(serverId)
    const release = this.#idle.hold(serverId)
    return () => {
      release()
      this.#noteUse(serverId)
    }
  }

  /** Records a call that does not need the sandbox. */
  touch(serverId: string): void {
    this.#noteUse(serverId)
    if (this.#sandboxes.get(serverId)) this.#idle.touch(serverId)
  }

  /** Returns when a server was last used in milliseconds since 1970, to the minute: now if it is in use; null if never. */
  lastUsedAt({ id, lastUsedAt }: ServerRow): number | null {
    return this.#idle.isHeld(id) ? this.#clock.now() : this.#lastUse.at(id, lastUsedAt)
  }

  /** Returns the limits of a server by its account's current plan. A running sandbox keeps those of its start. */
  limits({ accountId, tier }: ServerRow): Limits {
    return limitsOf(this.#plans.of(accountId).plan, tier)
  }

  /**
   * Starts a server in its turn, unless it runs.
   *
   * @param how `overBudget` is the error code if the budget is used up; `begin` starts the sandbox in another way
   * @throws BerthError with that code, 502 if the sandbox does not start, 503 if berth stops meanwhile
   */
  async start(
    row: ServerRow,
    how: { overBudget?: ErrorCode; begin?: () => Promise<Sandbox> } = {},
  ): Promise<Sandbox> {
    const {
      overBudget = 'budget_exceeded',
      begin = () => this.#compute.start(row.id, row.handle, this.limits(row)),
    } = how
    this.#metering.checkBudget(row.accountId, overBudget)
    await this.#afterReaping()
    if (this.#unwritten.has(row.id)) this.#markSleeping(row.id)
    try {
      const present = this.#sandboxes.get(row.id)
      const sandbox = await this.#sandboxes.start(row.id, begin)
      try {
        if (present === undefined) await this.#networks.begin(row, sandbox)
        // The budget may have been used up during the start.
        this.#metering.checkBudget(row.accountId, overBudget)
        if (present === undefined && sandbox.handle !== undefined)
          this.#records.setHandle(row.id, sandbox.handle)
        this.#records.markRunning(row)
        this.#unwritten.delete(row.id)
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

  /** Stops a server in its turn and records it. On a full disk it stops too, and is recorded when there is room. */
  async stop(row: ServerRow): Promise<void> {
    this.#idle.forget(row.id)
    const failures = this.#listeners.serverStopping(row.id)
    // Afterwards, files on an engine are reached by another start only.
    if (!this.#compute.driver.keepsFilesHere) await this.#meter.refresh(row, LAST_LOOK_MS)
    this.#recordSleep(row.id, failures)
    await this.#sandboxes.stop(row.id)
    this.#meter.changed(row)
  }

  /** Ends the processes of a server whose record is deleted. */
  async end(serverId: string): Promise<void> {
    this.#idle.forget(serverId)
    this.#lastUse.forget(serverId)
    this.#unwritten.delete(serverId)
    this.#listeners.serverStopping(serverId)
    await this.#sandboxes.stop(serverId)
    await this.#listeners.serverDeleted(serverId)
    this.#meter.forget(serverId)
  }

  /** Lists what earlier berths left, before a request can make something that is not of that. */
  takeStock(): void {
    const deleted = this.#records.deleted()
    const handles = deleted.map(({ handle }) => handle)
    this.#remains = { ...this.#compute.takeStock(this.#records.handles(), handles), deleted }
  }

  /** Ids of the directories that no server owned when stock was taken, and that stay. */
  get kept(): readonly string[] {
    return this.#compute.kept
  }

  /**
   * Ends the remains of an earlier berth, removes empty directories that no server owns, and starts every server that ran
   * when berth ended, a few at a time. No server starts before the remains have ended.
   */
  async recover(): Promise<void> {
    // A stop may precede the notification of the start.
    if (this.#stopping) return
    await this.#afterReaping()
    const rows = this.#records.running()
    const next = async (): Promise<void> => {
      for (let row = rows.pop(); row; row = rows.pop()) await this.#recoverOne(row)
    }
    await Promise.all(Array.from({ length: RECOVERY_WIDTH }, next))
  }

  /**
   * Lets no server be created, started, stopped or deleted until the returned function is called. Resolves when what was
   * under way has ended.
   *
   * @throws the signal's reason if it aborts first
   */
  async standStill(signal: AbortSignal): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#stillness = promise
    const goOn = (): void => {
      this.#stillness = null
      resolve()
    }
    try {
      await orAborted(Promise.allSettled(this.#working), signal)
      return goOn
    } catch (error) {
      goOn()
      throw error
    }
  }

  /** Freezes every process of every server that runs until the returned function is called. Until then no command begins. */
  pause(): Promise<() => void> {
    return this.#sandboxes.pause()
  }

  /** Resolves when the removal of directories that no server owns has ended. */
  async swept(): Promise<void> {
    await this.#reaped
    await this.#sweeping
  }

  /** Ends every process. The records stay, so the next start brings the servers up again. */
  async shutDown(): Promise<void> {
    this.#stopping = true
    clearInterval(this.#retry)
    // Otherwise the next start brings them up again.
    for (const serverId of this.#unwritten) this.#recordSleep(serverId, [])
    this.#idle.stop()
    this.#lastUse.flush()
    await this.#sandboxes.close()
    this.#metering.close()
    await this.#meter.stop()
  }

  /** Does a turn's work, as soon as it may begin. */
  #work<T>(work: () => Promise<T>): Promise<T> {
    if (this.#stillness !== null) return this.#stillness.then(() => this.#work(work))
    const done = work()
    this.#working.add(done)
    const forget = (): void => void this.#working.delete(done)
    done.then(forget, forget)
    return done
  }

  /** Records a use. A command that ends because berth stops does not count. */
  #noteUse(serverId: string): void {
    if (!this.#stopping) this.#lastUse.note(serverId, null)
  }

  /** Resolves when the remains of an earlier berth have ended. The first call begins that. */
  #afterReaping(): Promise<void> {
    this.#reaped ??= this.#reap().catch((error) =>
      this.#logger.error('what an earlier start left could not be ended', { error }),
    )
    return this.#reaped
  }

  async #reap(): Promise<void> {
    const remains = this.#remains
    if (remains === undefined) return
    try {
      await remains.end()
    } finally {
      // By what has their workspace mounted, processes are found only while that exists. The removal may take long and is
      // not awaited.
      this.#sweeping = this.#sweep(remains).catch((error) =>
        this.#logger.error('directories without a server could not be removed', { error }),
      )
    }
  }

  async #sweep({ remove, deleted }: Stock): Promise<void> {
    await remove()
    for (const { id, handle } of deleted) {
      try {
        await this.#compute.driver.destroy(handle)
      } catch (error) {
        // A later start, or one with what had the server, removes it.
        this.#logger.warn('files that nobody needs could not be removed', { serverId: id, error })
        continue
      }
      // The database is about to be closed. The next start records it.
      if (this.#stopping) return
      this.#records.forgetDeleted(id)
    }
  }

  async #recoverOne(row: ServerRow): Promise<void> {
    await this.turn(row.id, async () => {
      const now = this.#records.find(row.id)
      if (this.#stopping || !now || now.status === 'sleeping') return
      if (!now.announced) this.#records.announce(now)
      try {
        await this.start(now)
      } catch (error) {
        // `start` has logged why a sandbox does not start.
        if (!(error instanceof BerthError))
          this.#logger.error('a server could not be started again', { serverId: row.id, error })
        if (!this.#stopping) this.#markSleeping(row.id)
      }
    })
  }

  async #sleepWhenIdle(serverId: string): Promise<void> {
    try {
      await this.turn(serverId, async () => {
        const row = this.#records.find(serverId)
        if (row && row.status !== 'sleeping') await this.stop(row)
      })
    } catch (error) {
      this.#logger.error('an idle server could not be put to sleep', { serverId, error })
    }
  }

  #markSleeping(serverId: string): void {
    this.#idle.forget(serverId)
    this.#recordSleep(serverId, this.#listeners.serverStopping(serverId))
  }

  /** Records that a server has stopped, now or later. @param failures of listeners that could not record it */
  #recordSleep(serverId: string, failures: unknown[]): void {
    try {
      this.#records.markSleeping(serverId)
    } catch (error) {
      failures.push(error)
    }
    if (failures.length === 0) {
      this.#unwritten.delete(serverId)
      return
    }
    if (!this.#unwritten.has(serverId)) {
      const error = new AggregateError(failures, failures.map(messageOf).join('; '))
      this.#logger.error('the stop of a server cannot be written yet', { serverId, error })
    }
    this.#unwritten.add(serverId)
    this.#retry ??= setInterval(() => this.#recordLate(), RETRY_MS).unref()
  }

  /** Records the stops that could not be written. */
  #recordLate(): void {
    for (const serverId of this.#unwritten)
      void this.turn(serverId, async () => {
        if (this.#unwritten.has(serverId) && !this.#stopping) this.#markSleeping(serverId)
      })
    if (this.#unwritten.size > 0) return
    clearInterval(this.#retry)
    this.#retry = undefined
  }
}
