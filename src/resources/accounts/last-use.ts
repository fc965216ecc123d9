import { eq, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'

/** A credential that is used all the time is written this often. */
const PACE_MS = 60_000

/** A table of credentials, with when each was used last in milliseconds since 1970. */
type CredentialsTable = SQLiteTable & { id: SQLiteColumn; lastUsedAt: SQLiteColumn }

/** What this needs. */
interface LastUseDependencies {
  queries: Queries
  clock: Clock
  logger: Logger
  table: CredentialsTable
}

/** When each credential was used last: at most one write a minute for each, and none while an answer waits. */
export class LastUse {
  readonly #clock: Clock
  readonly #logger: Logger
  /** Milliseconds since 1970 by id, as they are or will be in the database. */
  readonly #noted = new Map<string, number>()
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
        .prepare(),
    )
  }

  /** A credential is used now. @param stored its time in the database */
  note(id: string, stored: number | null): void {
    const now = this.#clock.now()
    const last = this.at(id, stored)
    // The clock may have been set back, too.
    if (last !== null && Math.abs(now - last) < PACE_MS) return
    this.#noted.set(id, now)
    this.#pending.add(id)
    if (this.#pending.size === 1) setImmediate(() => this.flush())
  }

  /** When one was used last, to the minute. @param stored its time in the database */
  at(id: string, stored: number | null): number | null {
    return this.#noted.get(id) ?? stored
  }

  /** It is gone. */
  forget(id: string): void {
    this.#noted.delete(id)
    this.#pending.delete(id)
  }

  /** Writes what waits. What cannot be written is given up: nobody's request fails for it. */
  flush(): void {
    const ids = [...this.#pending]
    this.#pending.clear()
    try {
      for (const id of ids) this.#write().run({ id, at: this.#noted.get(id) ?? null })
    } catch (error) {
      this.#logger.warn('when a credential was used last could not be written', { error })
    }
  }
}
