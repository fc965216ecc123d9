import { eq, sql } from 'drizzle-orm'
import type { Queries } from '../../storage/database.ts'
import { chargeUntil, momentOf, pause, type Run } from './accrual.ts'
import { monthEnd, monthOf } from './month.ts'
import type { Plans } from './plans.ts'
import { meteredServers } from './table.ts'
import type { TierName } from './tiers.ts'
import { nextMark, type UsageBook } from './usage.ts'

/** A server that runs. */
export interface ServerRun extends Run {
  id: string
  tier: TierName
}

/** An account some of whose servers run. */
export interface RunningAccount {
  readonly id: string
  runs: ServerRun[]
  /** The elapsed time up to which everything is charged and notified. */
  settledAt: number
}

/** What charging an account found. */
export interface Settled {
  /** The runs, charged. */
  runs: ServerRun[]
  settledAt: number
  /** The elapsed time of the next thing that happens by itself. */
  wake: number
  /** Whether the budget is used up. */
  capped: boolean
}

/** Charges what has accrued: computes it, and writes it to servers and months. */
export class Ledger {
  readonly #queries: Queries
  readonly #plans: Plans
  readonly #usage: UsageBook

  constructor(queries: Queries, plans: Plans, usage: UsageBook) {
    this.#queries = queries
    this.#plans = plans
    this.#usage = usage
  }

  /**
   * Writes what an account used up to `to`, piece by piece: pieces end where a month or the budget
   * does. Call it inside a transaction, and take over the result when it is sure.
   *
   * @param offset calendar minus elapsed in all that time
   * @param exactly also writes the begun seconds
   */
  charge(account: RunningAccount, to: number, offset: number, exactly: boolean): Settled {
    const { cap } = this.#plans.of(account.id)
    const runs = account.runs.map((run) => ({ ...run }))
    const units = new Map<string, number>()
    for (let at = account.settledAt; ; ) {
      const turn = monthEnd(at + offset) - offset
      let usage = this.#usage.read(account.id, monthOf(at + offset))
      const paused = usage.used >= cap
      const mark = paused ? turn : momentOf(runs, nextMark(usage, cap) - usage.used, at)
      const wake = Math.min(mark, turn)
      const end = Math.min(to, wake)
      let sum = 0
      for (const run of runs) {
        if (paused) pause(run, end - at)
        const used = paused ? 0 : chargeUntil(run, end)
        units.set(run.id, (units.get(run.id) ?? 0) + used)
        sum += used
      }
      if (sum > 0) usage = this.#usage.keep({ ...usage, used: usage.used + sum }, cap)
      at = end
      if (wake <= to) continue
      for (const run of runs) this.#write(run, units.get(run.id) ?? 0, to, exactly)
      return { runs, settledAt: to, wake, capped: usage.used >= cap }
    }
  }

  /** Charges a server, and the month of its account, with units that are due at once. */
  add(accountId: string, serverId: string, month: string, units: number): void {
    const creditUnits = sql`${meteredServers.creditUnits} + ${units}`
    this.#queries.update(meteredServers).set({ creditUnits }).where(eq(meteredServers.id, serverId)).run()
    const usage = this.#usage.read(accountId, month)
    this.#usage.keep({ ...usage, used: usage.used + units }, this.#plans.of(accountId).cap)
  }

  #write(run: ServerRun, units: number, to: number, exactly: boolean): void {
    if (units === 0 && !exactly) return
    const creditUnits = sql`${meteredServers.creditUnits} + ${units}`
    this.#queries
      .update(meteredServers)
      .set({ creditUnits, carryMs: to - run.since })
      .where(eq(meteredServers.id, run.id))
      .run()
  }
}
