import { eq, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import { apiKeys } from './table.ts'

/** A key that is used all the time is written this often. */
const PACE_MS = 60_000

/** When each key was used last: at most one write a minute and key, and none while an answer waits. */
export class LastUse {
  readonly #clock: Clock
  readonly #logger: Logger
  /** Milliseconds since 1970 by key id, as they are or will be in the database. */
  readonly #noted = new Map<string, number>()
  readonly #pending = new Set<string>()
  readonly #write

  constructor(queries: Queries, clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
    this.#write = once(() =>
      queries
        .update(apiKeys)
        .set({ lastUsedAt: sql`${sql.placeholder('at')}` })
        .where(eq(apiKeys.id, sql.placeholder('id')))
        .prepare(),
    )
  }

  /** A key is used now. @param stored its time in the database */
  note(keyId: string, stored: number | null): void {
    const now = this.#clock.now()
    const last = this.at(keyId, stored)
    // The clock may have been set back, too.
    if (last !== null && Math.abs(now - last) < PACE_MS) return
    this.#noted.set(keyId, now)
    this.#pending.add(keyId)
    if (this.#pending.size === 1) setImmediate(() => this.flush())
  }

  /** When a key was used last, to the minute. @param stored its time in the database */
  at(keyId: string, stored: number | null): number | null {
    return this.#noted.get(keyId) ?? stored
  }

  /** The key is gone. */
  forget(keyId: string): void {
    this.#noted.delete(keyId)
    this.#pending.delete(keyId)
  }

  /** Writes what waits. What cannot be written is given up: nobody's request fails for it. */
  flush(): void {
    const ids = [...this.#pending]
    this.#pending.clear()
    try {
      for (const id of ids) this.#write().run({ id, at: this.#noted.get(id) ?? null })
    } catch (error) {
      this.#logger.warn('when a key was used last could not be written', { error })
    }
  }
}
