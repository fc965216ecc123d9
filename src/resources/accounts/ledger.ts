import { eq, isNotNull, sql } from 'drizzle-orm'
import { once } from '../../runtime/once.ts'
import type { Queries } from '../../storage/database.ts'
import { monthEnd, monthOf } from './credits.ts'
import { type DailyUsage, dayEnd, dayOf } from './daily-usage.ts'
import type { Plans } from './plans.ts'
import { meteredServers } from './table.ts'
import type { TierName } from './tiers.ts'
import { nextMark, type UsageStore } from './usage.ts'

/** A server that runs. */
interface ServerRun extends PricedRun {
  id: string
  tier: TierName
}

type MeteredRow = typeof meteredServers.$inferSelect

/** Returns the price of a server of an account, in units of credits per second. */
type RateOf = (accountId: string, tier: TierName) => number

/** An account with running servers. */
export interface RunningAccount {
  readonly id: string
  runs: ServerRun[]
  /** The elapsed time up to which everything is charged and notified. */
  chargedUntil: number
}

/** The state of an account after a charge. */
export interface ChargeResult {
  /** The runs, charged. */
  runs: ServerRun[]
  chargedUntil: number
  /** The elapsed time of the next change: the end of the month, the threshold or the cap. */
  nextChangeAt: number
  /** Whether the budget is used up. */
  isCapped: boolean
}

/** A charge of an account under way. */
interface Charge {
  readonly accountId: string
  /** Copies, which the charge changes. */
  readonly runs: readonly ServerRun[]
  /** The units that were charged to each run, by its id. */
  readonly units: Map<string, number>
  readonly cap: number
  /** Calendar time minus elapsed time. */
  readonly offset: number
}

/** The state after a part of a charge. Times are elapsed times. */
interface ChargedStep {
  readonly end: number
  /** When the month ends, or the use reaches a mark of the budget. */
  readonly nextChangeAt: number
  /** The units that the account has used in the month of the step. */
  readonly used: number
}

/** Computes the use of servers and adds it to servers and months. */
export class Ledger {
  readonly #queries: Queries
  readonly #plans: Plans
  readonly #usage: UsageStore
  readonly #days: DailyUsage
  readonly #write
  readonly #end

  constructor(queries: Queries, plans: Plans, usage: UsageStore, days: DailyUsage) {
    this.#days = days
    this.#queries = queries
    this.#plans = plans
    this.#usage = usage
    this.#write = once(() =>
      queries
        .update(meteredServers)
        .set({
          creditUnits: sql`${meteredServers.creditUnits} + ${sql.placeholder('units')}`,
          carryMs: sql`${sql.placeholder('carryMs')}`,
          meteredAt: sql`${sql.placeholder('meteredAt')}`,
        })
        .where(eq(meteredServers.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#end = once(() =>
      queries
        .update(meteredServers)
        .set({ meteredAt: null })
        .where(eq(meteredServers.id, sql.placeholder('id')))
        .prepare(),
    )
  }

  /**
   * Charges an account for its use up to `to`. It splits the time at the ends of days and months and at the marks of
   * the budget. Call it inside a transaction, and adopt the result after the commit.
   *
   * @param offset calendar time minus elapsed time
   * @param exactly also writes the begun seconds: of all servers, or of the one with this id
   */
  charge(account: RunningAccount, to: number, offset: number, exactly: boolean | string): ChargeResult {
    const { cap } = this.#plans.of(account.id)
    const runs = account.runs.map((run) => ({ ...run }))
    const units = new Map<string, number>()
    const charge: Charge = { accountId: account.id, runs, units, cap, offset }
    let step = this.#chargeStep(charge, account.chargedUntil, to)
    while (step.end < to || step.nextChangeAt <= to) step = this.#chargeStep(charge, step.end, to)
    for (const run of runs) {
      const used = units.get(run.id) ?? 0
      if (used > 0 || exactly === true || exactly === run.id) this.write(run, used, to, offset)
    }
    return { runs, chargedUntil: to, nextChangeAt: step.nextChangeAt, isCapped: step.used >= cap }
  }

  /** Charges runs from `from` up to `to`, or up to the end of the day or the next change if that comes first. */
  #chargeStep({ accountId, runs, units, cap, offset }: Charge, from: number, to: number): ChargedStep {
    const usage = this.#usage.read(accountId, monthOf(from + offset))
    const paused = usage.used >= cap
    const monthEndsAt = monthEnd(from + offset) - offset
    const markAt = paused ? monthEndsAt : elapsedAtUse(runs, nextMark(usage, cap) - usage.used, from)
    const nextChangeAt = Math.min(markAt, monthEndsAt)
    const end = Math.min(to, nextChangeAt, paused ? to : dayEnd(from + offset) - offset)
    if (paused) {
      for (const run of runs) skipTime(run, end - from)
      return { end, nextChangeAt, used: usage.used }
    }
    const day = dayOf(from + offset)
    let sum = 0
    for (const run of runs) {
      const used = chargeUntil(run, end)
      units.set(run.id, (units.get(run.id) ?? 0) + used)
      if (used > 0) this.#days.add({ accountId, day, serverId: run.id, kind: 'running', units: used })
      sum += used
    }
    if (sum === 0) return { end, nextChangeAt, used: usage.used }
    const saved = this.#usage.save({ ...usage, used: usage.used + sum }, cap)
    return { end, nextChangeAt, used: saved.used }
  }

  /**
   * Charges units to a server, and to the day and the month of its account.
   *
   * @param at milliseconds since 1970
   */
  add(accountId: string, serverId: string, kind: 'task' | 'build', at: number, units: number): void {
    this.#days.add({ accountId, day: dayOf(at), serverId, kind, units })
    const creditUnits = sql`${meteredServers.creditUnits} + ${units}`
    this.#queries.update(meteredServers).set({ creditUnits }).where(eq(meteredServers.id, serverId)).run()
    const usage = this.#usage.read(accountId, monthOf(at))
    this.#usage.save({ ...usage, used: usage.used + units }, this.#plans.of(accountId).cap)
  }

  /** Adds units to a run's server, and records the elapsed time until which it is charged. */
  write({ id, since }: ServerRun, units: number, to: number, offset: number): void {
    this.#write().run({ id, units, carryMs: to - since, meteredAt: to + offset })
  }

  /** Records that a server is not charged any more. */
  end(serverId: string): void {
    this.#end().run({ id: serverId })
  }

  /** Returns the servers that ran when berth was killed. */
  killed(): MeteredRow[] {
    return this.#queries.select().from(meteredServers).where(isNotNull(meteredServers.meteredAt)).all()
  }

  /**
   * Charges servers until berth was killed, and records that they are not charged any more. Call it inside a
   * transaction.
   *
   * @param killedAt milliseconds since 1970; null if that is unknown, which charges nothing
   */
  chargeKilled(rows: MeteredRow[], killedAt: number | null, rateOf: RateOf): void {
    const ran = rows.flatMap(({ meteredAt, ...row }) =>
      killedAt === null || meteredAt === null || meteredAt >= killedAt ? [] : [{ ...row, meteredAt }],
    )
    for (const [id, servers] of Map.groupBy(ran, ({ accountId }) => accountId)) {
      // The database has dates, so here elapsed time is the calendar.
      const runs = servers.map(({ id: serverId, tier, carryMs, meteredAt }) => ({
        id: serverId,
        tier,
        rate: rateOf(id, tier),
        since: meteredAt - carryMs,
      }))
      const chargedUntil = Math.min(...servers.map(({ meteredAt }) => meteredAt))
      if (killedAt !== null) this.charge({ id, runs, chargedUntil }, killedAt, 0, true)
    }
    for (const { id } of rows) this.end(id)
  }
}

/** The price and the charged time of a server that runs. */
interface PricedRun {
  /** Units of credits per second. */
  rate: number
  /** The elapsed time at which its first uncharged second began. */
  since: number
}

const SECOND_MS = 1_000

/** Returns the whole seconds of a run that ended by `at` and are not charged yet. */
const secondsBy = ({ since }: PricedRun, at: number): number =>
  Math.max(0, Math.floor((at - since) / SECOND_MS))

/** Returns the units of runs up to `at` that are not charged yet. */
const unitsBy = (runs: readonly PricedRun[], at: number): number =>
  runs.reduce((sum, run) => sum + run.rate * secondsBy(run, at), 0)

/**
 * Charges the seconds of a run that ended by `at`. A begun second stays uncharged.
 *
 * @returns units of credits
 */
function chargeUntil(run: PricedRun, at: number): number {
  const seconds = secondsBy(run, at)
  run.since += seconds * SECOND_MS
  return seconds * run.rate
}

/** Skips milliseconds in which a run costs nothing. */
function skipTime(run: PricedRun, ms: number): void {
  run.since += ms
}

/**
 * Returns the elapsed time at which runs will have used `units` more: the end of the second that reaches them.
 *
 * @param from the elapsed time up to which the runs are charged
 */
function elapsedAtUse(runs: readonly PricedRun[], units: number, from: number): number {
  if (units <= 0) return from
  const together = runs.reduce((sum, { rate }) => sum + rate, 0)
  if (together === 0) return Number.POSITIVE_INFINITY
  // By this time each run has charged enough whole seconds, whichever part of a second it began with.
  let late = from + (Math.ceil(units / together) + 1) * SECOND_MS
  // By this time none has: each charges at most one second more than have passed since `from`.
  let early = from + Math.max(0, Math.floor(units / together) - 2) * SECOND_MS
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (unitsBy(runs, middle) >= units) late = middle
    else early = middle
  }
  return late
}
