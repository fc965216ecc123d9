import { eq, sql } from 'drizzle-orm'
import type { Compute, Handle } from '../../compute/driver.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Queries } from '../../storage/database.ts'
import { servers } from './table.ts'

/** A server that keeps changing is walked at most this often in the background. */
const PACE_MS = 1_000

/** A change is measured no sooner than this, so that a walk never delays the commands of a busy moment. */
const CALM_MS = 200

/** A server whose storage is measured. */
interface Measured {
  id: string
  handle: Handle
}

/**
 * Keeps `storageUsedGb` true by walking a workspace when it may have changed: after commands and
 * writes, and when a single server is looked at. docs/storage.md compares this with a standing watch.
 */
export class StorageMeter {
  readonly #queries: Queries
  readonly #compute: Compute
  readonly #logger: Logger
  readonly #walks = new Map<string, Promise<number>>()
  /** When each was measured last, by a clock that never jumps. */
  readonly #walkedAt = new Map<string, number>()
  /** Those whose kept sum may be too small. */
  readonly #uncertain = new Set<string>()
  /** Walks that wait for their time. */
  readonly #due = new Map<string, ReturnType<typeof setTimeout>>()

  constructor(queries: Queries, compute: Compute, logger: Logger) {
    this.#queries = queries
    this.#compute = compute
    this.#logger = logger
  }

  /** Walks the workspace and keeps the sum; a walk under way is shared. Resolves to bytes. */
  measure({ id, handle }: Measured): Promise<number> {
    const running = this.#walks.get(id)
    if (running) return running
    this.#cancelDue(id)
    this.#uncertain.delete(id)
    const walk = this.#compute
      .workspace(handle)
      .usage()
      .then((bytes) => {
        this.#walkedAt.set(id, performance.now())
        this.#queries.update(servers).set({ storageBytes: bytes }).where(eq(servers.id, id)).run()
        return bytes
      })
      .finally(() => this.#walks.delete(id))
    this.#walks.set(id, walk)
    return walk
  }

  /** A command may have changed the workspace by any amount: it is measured soon, in the background. */
  changed(server: Measured): void {
    this.#uncertain.add(server.id)
    this.#schedule(server)
  }

  /** Berth itself has written so many bytes: they are added at once, and the sum is made exact soon. */
  grew(server: Measured, bytes: number): void {
    const grown = { storageBytes: sql`${servers.storageBytes} + ${bytes}` }
    this.#queries.update(servers).set(grown).where(eq(servers.id, server.id)).run()
    this.#schedule(server)
  }

  /** Bytes in use, at least: the sum that is kept, or a fresh one where commands may have changed it. */
  async current(server: Measured & { storageBytes: number }): Promise<number> {
    return this.#uncertain.has(server.id) ? this.measure(server) : server.storageBytes
  }

  #schedule(server: Measured): void {
    if (this.#due.has(server.id)) return
    const pause = Math.max(CALM_MS, PACE_MS - this.#age(server.id))
    const timer = setTimeout(() => {
      this.#due.delete(server.id)
      void this.#measureQuietly(server)
    }, pause)
    timer.unref()
    this.#due.set(server.id, timer)
  }

  /**
   * Measures where something may have changed since the last time, and waits for it, but no longer
   * than `patienceMs`. What runs in the background may change files at any time.
   */
  async refresh(server: Measured, patienceMs: number): Promise<void> {
    if (!this.#due.has(server.id) && this.#age(server.id) < PACE_MS) return
    const patience = Promise.withResolvers<void>()
    const timer = setTimeout(patience.resolve, patienceMs)
    await Promise.race([this.#measureQuietly(server), patience.promise])
    clearTimeout(timer)
  }

  /** Measures where the kept sum may not be exact, and waits for it. */
  async exact(server: Measured): Promise<void> {
    // One that is under way may have passed by what has changed since.
    await this.#walks.get(server.id)?.catch(() => {})
    await this.#measureQuietly(server)
  }

  /** The server is gone. */
  forget(serverId: string): void {
    this.#cancelDue(serverId)
    this.#uncertain.delete(serverId)
    this.#walkedAt.delete(serverId)
  }

  /** Begins no further walk in the background; resolves when none is under way. */
  async stop(): Promise<void> {
    for (const timer of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
    await Promise.allSettled(this.#walks.values())
  }

  #age(serverId: string): number {
    return performance.now() - (this.#walkedAt.get(serverId) ?? Number.NEGATIVE_INFINITY)
  }

  #cancelDue(serverId: string): void {
    clearTimeout(this.#due.get(serverId))
    this.#due.delete(serverId)
  }

  #measureQuietly(server: Measured): Promise<void> {
    return this.measure(server).then(
      () => {},
      (error) => this.#logger.warn('a workspace could not be measured', { serverId: server.id, error }),
    )
  }
}
