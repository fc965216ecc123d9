import { eq, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'

/** Milliseconds between two writes for what is in constant use. */
const PACE_MS = 60_000

/** A table of credentials or servers that holds the time of last use in milliseconds since 1970. */
type UsedTable = SQLiteTable & { id: SQLiteColumn; lastUsedAt: SQLiteColumn }

/** Dependencies of the times of last use. */
interface LastUseDependencies {
  queries: Queries
  clock: Clock
  logger: Logger
  table: UsedTable
}

/**
 * Records when each credential or server was last used. It writes at most once a minute for each, and never before a response.
 */
export class LastUse {
  readonly #clock: Clock
  readonly #logger: Logger
  /** Milliseconds since 1970 by id, as they are or will be in the database. */
  readonly #times = new Map<string, number>()
  readonly #pending = new Set<string>()
  readonly #write

  constructor({ queries, clock, logger, table }: LastUseDependencies) {
    this.#clock = clock
    this.#logger = logger
    this.#write = once(() =>
      queries
        .update(table)
        .set({ lastUsedAt: sql`${sql.placeholder('at')}` })
        .where(eq(table.id, sql.placeholder('id')))
        .returning({ id: table.id })
        .prepare(),
    )
  }

  /**
   * Records a use.
   *
   * @param stored its time in the database
   * @returns whether the time that `at` returns is another now
   */
  note(id: string, stored: number | null): boolean {
    const now = this.#clock.now()
    const last = this.at(id, stored)
    // The clock may have been set back.
    if (last !== null && Math.abs(now - last) < PACE_MS) return false
    this.#times.set(id, now)
    this.#pending.add(id)
    if (this.#pending.size === 1) setImmediate(() => this.flush())
    return true
  }

  /**
   * Returns when it was last used, to the minute.
   *
   * @param stored its time in the database
   */
  at(id: string, stored: number | null): number | null {
    return this.#times.get(id) ?? stored
  }

  /** Forgets what was deleted. */
  forget(id: string): void {
    this.#times.delete(id)
    this.#pending.delete(id)
  }

  /** Writes pending times. Errors are only logged, because no request should fail for them. */
  flush(): void {
    const ids = [...this.#pending]
    this.#pending.clear()
    try {
      for (const id of ids) {
        const written = this.#write().get({ id, at: this.#times.get(id) ?? null })
        // A use may end after the deletion.
        if (written === undefined) this.#times.delete(id)
      }
    } catch (error) {
      this.#logger.warn('the time of a last use could not be written', { error })
    }
  }
}
