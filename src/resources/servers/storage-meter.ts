import { and, eq, ne, sql } from 'drizzle-orm'
import type { Compute, ServerHandle } from '../../compute/compute.ts'
import { isBusy, isDiskFull } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import { within } from '../../runtime/wait.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import { servers } from './table.ts'

/** Milliseconds between background measurements of a server that keeps changing. */
const PACE_MS = 1_000

/** Milliseconds after a change before it is measured. Measuring at once would slow down commands that follow. */
const CALM_MS = 200

/** Dependencies of the measurements. */
interface MeterDependencies {
  queries: Queries
  compute: Compute
  /** Notified of every new size. */
  changes: Changes
  logger: Logger
}

/** A server to measure. */
interface MeasuredServer {
  id: string
  handle: ServerHandle
}

/**
 * Keeps `storageUsedGb` up to date. It measures a workspace after commands and writes, and when a single server is
 * requested. Nothing is started for that: what sleeps on an engine was measured before it was stopped. docs/storage.md compares this with a permanent watch.
 */
export class StorageMeter {
  readonly #compute: Compute
  readonly #changes: Changes
  readonly #logger: Logger
  #storedBeside: (serverId: string) => number = () => 0
  readonly #walks = new Map<string, Promise<number>>()
  /** Times of the last measurements, by a monotonic clock. */
  readonly #walkedAt = new Map<string, number>()
  /** Servers whose recorded size may be too small. */
  readonly #uncertain = new Set<string>()
  /** Scheduled measurements. */
  readonly #due = new Map<string, ReturnType<typeof setTimeout>>()
  #stopped = false
  readonly #setSize
  readonly #addToSize

  constructor({ queries, compute, changes, logger }: MeterDependencies) {
    this.#compute = compute
    this.#changes = changes
    this.#logger = logger
    const changed = { id: servers.id, accountId: servers.accountId }
    const { id, storageBytes } = servers
    this.#setSize = once(() =>
      queries
        .update(servers)
        .set({ storageBytes: sql`${sql.placeholder('bytes')}` })
        .where(and(eq(id, sql.placeholder('id')), ne(storageBytes, sql.placeholder('bytes'))))
        .returning(changed)
        .prepare(),
    )
    this.#addToSize = once(() =>
      queries
        .update(servers)
        .set({ storageBytes: sql`${storageBytes} + ${sql.placeholder('bytes')}` })
        .where(eq(id, sql.placeholder('id')))
        .returning(changed)
        .prepare(),
    )
  }

  /** Counts what berth stores for a server beside its workspace, too. @param bytesOf returns its bytes */
  countBeside(bytesOf: (serverId: string) => number): void {
    this.#storedBeside = bytesOf
  }

  /** Measures the workspace, adds what is stored beside it, and records the size. Parallel calls share a measurement. Resolves to bytes. */
  measure({ id, handle }: MeasuredServer): Promise<number> {
    const running = this.#walks.get(id)
    if (running) return running
    this.#cancelDue(id)
    this.#uncertain.delete(id)
    const walk = this.#compute
      .workspace(handle)
      .usage()
      .then((inWorkspace) => {
        const bytes = inWorkspace + this.#storedBeside(id)
        this.#walkedAt.set(id, performance.now())
        // The database is closed, or about to be.
        if (this.#stopped) return bytes
        this.#record(id, () => this.#setSize().get({ id, bytes }))
        return bytes
      })
      .finally(() => this.#walks.delete(id))
    this.#walks.set(id, walk)
    return walk
  }

  /** Schedules a measurement after a command, which may have changed any number of files. */
  changed(server: MeasuredServer): void {
    this.#uncertain.add(server.id)
    this.#schedule(server)
  }

  /** Adds bytes that berth itself has written to the recorded size, and schedules a measurement. */
  grew(server: MeasuredServer, bytes: number): void {
    this.#record(server.id, () => this.#addToSize().get({ id: server.id, bytes }))
    this.#schedule(server)
  }

  /**
   * Returns a lower bound of the bytes in use: the recorded size, or a new measurement if commands may have changed
   * it.
   */
  async current(server: MeasuredServer & { storageBytes: number }): Promise<number> {
    return this.#uncertain.has(server.id) ? this.measure(server) : server.storageBytes
  }

  #schedule(server: MeasuredServer): void {
    if (this.#stopped || this.#due.has(server.id)) return
    const pause = Math.max(CALM_MS, PACE_MS - this.#age(server.id))
    const timer = setTimeout(() => {
      this.#due.delete(server.id)
      if (this.#canMeasure(server)) void this.#measureQuietly(server)
      else this.#uncertain.add(server.id)
    }, pause)
    timer.unref()
    this.#due.set(server.id, timer)
  }

  /**
   * Measures if something may have changed since the last measurement. Waits at most `patienceMs` for it. Background
   * processes may change files at any time.
   */
  async refresh(server: MeasuredServer, patienceMs: number): Promise<void> {
    if (!this.#canMeasure(server) || (!this.#due.has(server.id) && this.#age(server.id) < PACE_MS)) return
    await within(patienceMs, this.#measureQuietly(server), undefined)
  }

  /** Measures if the recorded size may be inexact, and waits for it. */
  async exact(server: MeasuredServer): Promise<void> {
    // A running measurement may have missed the latest changes.
    await this.#walks.get(server.id)?.catch(() => {})
    if (this.#canMeasure(server)) await this.#measureQuietly(server)
  }

  /** Forgets a server that was deleted. */
  forget(serverId: string): void {
    this.#cancelDue(serverId)
    this.#uncertain.delete(serverId)
    this.#walkedAt.delete(serverId)
  }

  /** Schedules no more measurements. Resolves when none is running. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const timer of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
    await Promise.allSettled(this.#walks.values())
  }

  /**
   * Records a size. The files are what counts: where the database cannot be written, the size is uncertain.
   *
   * @param write returns the server whose size is recorded anew, if there is one
   */
  #record(serverId: string, write: () => { id: string; accountId: string } | undefined): void {
    try {
      const changed = write()
      if (changed) this.#changes.notify('server', changed.id, changed.accountId, changed.id)
    } catch (error) {
      if (!isDiskFull(error) && !isBusy(error)) throw error
      this.#uncertain.add(serverId)
    }
  }

  #canMeasure({ handle }: MeasuredServer): boolean {
    return this.#compute.driver.filesAreOpen?.(handle) ?? true
  }

  #age(serverId: string): number {
    return performance.now() - (this.#walkedAt.get(serverId) ?? Number.NEGATIVE_INFINITY)
  }

  #cancelDue(serverId: string): void {
    clearTimeout(this.#due.get(serverId))
    this.#due.delete(serverId)
  }

  async #measureQuietly(server: MeasuredServer): Promise<void> {
    try {
      await this.measure(server)
    } catch (error) {
      this.#logger.warn('a workspace could not be measured', { serverId: server.id, error })
    }
  }
}
