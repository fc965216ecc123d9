import { and, asc, eq, gte, lt, ne, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import { dailyUsage } from './table.ts'

/** The use of a server on a day. */
export type DailyUsageRow = typeof dailyUsage.$inferSelect

const DAY_MS = 86_400_000

/** Days that are kept. */
const KEPT_DAYS = 400

/**
 * Returns the day (UTC) of a time, such as `2030-01-31`.
 *
 * @param ms milliseconds since 1970
 */
export const dayOf = (ms: number): string => new Date(ms).toISOString().replace(/T.*$/, '')

/**
 * Returns the end of the day of a time: the first moment of the next day.
 *
 * @param ms milliseconds since 1970
 */
export const dayEnd = (ms: number): number => (Math.floor(ms / DAY_MS) + 1) * DAY_MS

/** Stores what servers use by day. */
export class DailyUsage {
  readonly #queries: Queries
  readonly #add

  constructor(queries: Queries) {
    this.#queries = queries
    this.#add = once(() =>
      queries
        .insert(dailyUsage)
        .values({
          accountId: sql.placeholder('accountId'),
          day: sql.placeholder('day'),
          serverId: sql.placeholder('serverId'),
          kind: sql.placeholder('kind'),
          units: sql.placeholder('units'),
        })
        .onConflictDoUpdate({
          target: [dailyUsage.accountId, dailyUsage.day, dailyUsage.serverId, dailyUsage.kind],
          set: { units: sql`${dailyUsage.units} + excluded.units` },
        })
        .prepare(),
    )
  }

  /** Adds units to a server's day. */
  add(row: DailyUsageRow): void {
    this.#add().run(row)
  }

  /** Returns the days of an account from one on, the oldest first. */
  since(accountId: string, day: string): DailyUsageRow[] {
    const { accountId: account, day: of } = dailyUsage
    return this.#queries
      .select()
      .from(dailyUsage)
      .where(and(eq(account, accountId), gte(of, day), ne(of, '')))
      .orderBy(asc(of))
      .all()
  }

  /** Reports whether an account used something before days were kept. */
  hasEarlierUse(accountId: string): boolean {
    const { accountId: account, day } = dailyUsage
    return (
      this.#queries
        .select({ day })
        .from(dailyUsage)
        .where(and(eq(account, accountId), eq(day, '')))
        .get() !== undefined
    )
  }

  /**
   * Removes days that are long over.
   *
   * @param now milliseconds since 1970
   */
  prune(now: number): void {
    const { day } = dailyUsage
    this.#queries
      .delete(dailyUsage)
      .where(and(lt(day, dayOf(now - KEPT_DAYS * DAY_MS)), ne(day, '')))
      .run()
  }
}
