import { and, eq, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import { toCredits } from './credits.ts'
import { accountUsage } from './table.ts'

/** What an account used in a month. */
export type Usage = typeof accountUsage.$inferSelect

/** The part of a cap, in fifths, at which its approach is notified. */
const THRESHOLD_FIFTHS = 4

/** The use at which the approach of a cap is notified, in units. */
const thresholdOf = (cap: number): number => Math.ceil((cap * THRESHOLD_FIFTHS) / 5)

/** The next use, in units, at which something happens under a cap. */
export function nextMark({ used }: Usage, cap: number): number {
  const threshold = thresholdOf(cap)
  return used < threshold ? threshold : cap
}

/** What accounts used by month, and who was told of it. */
export class UsageBook {
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
    this.#write = (usage: Usage): void => {
      queries
        .insert(accountUsage)
        .values(usage)
        .onConflictDoUpdate({ target: [accountUsage.accountId, accountUsage.month], set: usage })
        .run()
    }
  }

  /** What an account used in a month. */
  read(accountId: string, month: string): Usage {
    const kept = this.#read().get({ accountId, month })
    return kept ?? { accountId, month, used: 0, thresholdCaps: [], reachedCaps: [] }
  }

  /**
   * Keeps what an account used, and emits what that means under its cap, each once a month and cap.
   * Call it inside a transaction.
   *
   * @returns the usage as it is kept
   */
  keep(usage: Usage, cap: number): Usage {
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
