import { and, eq, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import { toCredits } from './credits.ts'
import { accountUsage } from './table.ts'

/** An account's use in a month. */
type MonthUsage = typeof accountUsage.$inferSelect

/** The part of a cap, in fifths, at which `quota.threshold` is emitted. */
const THRESHOLD_FIFTHS = 4

/** Returns the use in units at which `quota.threshold` is emitted. */
const thresholdOf = (cap: number): number => Math.ceil((cap * THRESHOLD_FIFTHS) / 5)

/** Returns the next use in units at which an event is emitted under a cap. */
export function nextMark({ used }: MonthUsage, cap: number): number {
  const threshold = thresholdOf(cap)
  return used < threshold ? threshold : cap
}

/** Stores the use of accounts by month, and emits the events about their caps. */
export class UsageStore {
  readonly #outbox: Outbox
  readonly #read
  readonly #write

  constructor(queries: Queries, outbox: Outbox) {
    this.#outbox = outbox
    this.#read = once(() =>
      queries
        .select()
        .from(accountUsage)
        .where(
          and(
            eq(accountUsage.accountId, sql.placeholder('accountId')),
            eq(accountUsage.month, sql.placeholder('month')),
          ),
        )
        .prepare(),
    )
    this.#write = (usage: MonthUsage): void => {
      queries
        .insert(accountUsage)
        .values(usage)
        .onConflictDoUpdate({ target: [accountUsage.accountId, accountUsage.month], set: usage })
        .run()
    }
  }

  /** Returns an account's use in a month. */
  read(accountId: string, month: string): MonthUsage {
    const kept = this.#read().get({ accountId, month })
    return kept ?? { accountId, month, used: 0, thresholdCaps: [], reachedCaps: [] }
  }

  /**
   * Stores an account's use and emits the events that it causes, each once for a month and a cap. Call it inside a
   * transaction.
   *
   * @returns the stored use
   */
  save(usage: MonthUsage, cap: number): MonthUsage {
    const kept = { ...usage }
    const data = { credits_used: toCredits(usage.used), budget_cap: toCredits(cap) }
    if (usage.used >= thresholdOf(cap) && !usage.thresholdCaps.includes(cap)) {
      kept.thresholdCaps = [...usage.thresholdCaps, cap]
      this.#outbox.emit(usage.accountId, 'quota.threshold', data)
    }
    if (usage.used >= cap && !usage.reachedCaps.includes(cap)) {
      kept.reachedCaps = [...usage.reachedCaps, cap]
      this.#outbox.emit(usage.accountId, 'quota.cap_reached', data)
    }
    this.#write(kept)
    return kept
  }
}
