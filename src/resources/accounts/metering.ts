import { BerthError, type ErrorCode } from '../../errors.ts'
import { type Clock, type Timer, toIso } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import { CapAction } from './cap-action.ts'
import { toCredits, toUnits, unitsPerSecond } from './credits.ts'
import { Ledger, type RunningAccount, type Settled } from './ledger.ts'
import { monthEnd, monthOf } from './month.ts'
import type { Plans } from './plans.ts'
import type { TierName } from './tiers.ts'
import { UsageBook } from './usage.ts'

/** What metering needs. */
export interface MeteringDependencies {
  queries: Queries
  clock: Clock
  outbox: Outbox
  plans: Plans
  logger: Logger
}

/** How often what has accrued is written, in physical time: what a crash can lose. */
const HEARTBEAT_MS = 1_000

/** A server as metering needs it to begin. */
export interface Metered {
  id: string
  accountId: string
  tier: TierName
  carryMs: number
}

/** An account some of whose servers run, and when it is looked at next. */
interface Account extends RunningAccount {
  timer: Timer | null
}

/**
 * Charges accounts for the time in which their servers run, by whole seconds, to the month (UTC) in
 * which each second ends. The database has what is charged; memory has only since when each server
 * runs, so that a crash loses what came after the last heartbeat and charges nothing twice. What was
 * charged and what it leads to are computed up to the millisecond at which it happens, however late
 * that is looked at.
 */
export class Metering {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #plans: Plans
  readonly #logger: Logger
  readonly #usage: UsageBook
  readonly #ledger: Ledger
  readonly #accounts = new Map<string, Account>()
  readonly #atCap: CapAction
  readonly #unsubscribe: () => void
  #heartbeat: ReturnType<typeof setInterval> | undefined
  /** Calendar minus elapsed, as everything up to `settledAt` was dated. */
  #offset: number

  constructor({ queries, clock, outbox, plans, logger }: MeteringDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#plans = plans
    this.#logger = logger
    this.#atCap = new CapAction(logger)
    this.#usage = new UsageBook(queries, outbox)
    this.#ledger = new Ledger(queries, plans, this.#usage)
    this.#offset = clock.now() - clock.elapsed()
    this.#unsubscribe = clock.onCorrection(() => this.#redate())
  }

  /** Sets what puts the servers of an account to sleep when its budget is used up. */
  onCapReached(sleep: (accountId: string) => Promise<void>): void {
    this.#atCap.onCapReached(sleep)
  }

  /** A server runs from now on, as is committed; nothing changes for one that does already. */
  begin({ id, accountId, tier, carryMs }: Metered): void {
    const { rates } = this.#termsOf(accountId)
    this.settle(accountId)
    const account = this.#accounts.get(accountId) ?? this.#idle(accountId)
    if (account.runs.some((run) => run.id === id)) return
    account.runs.push({ id, tier, rate: rates(tier), since: this.#clock.elapsed() - carryMs })
    this.#accounts.set(accountId, account)
    this.settle(accountId)
    this.#heartbeat ??= setInterval(() => this.#beatIfMoved(), HEARTBEAT_MS).unref()
  }

  /**
   * A server runs no more. Call it in the transaction that says so, while its row is still there.
   *
   * @returns to be called when that is committed
   */
  end(serverId: string): () => void {
    const account = [...this.#accounts.values()].find(({ runs }) => runs.some(({ id }) => id === serverId))
    if (!account) return () => {}
    this.settle(account.id, true)
    return () => {
      account.runs = account.runs.filter(({ id }) => id !== serverId)
      if (account.runs.length === 0) this.#drop(account)
      else this.settle(account.id)
      if (this.#accounts.size === 0) this.#stopBeating()
    }
  }

  /**
   * Charges what an account has used until now and does what follows from it.
   *
   * @param exactly also keeps the begun seconds, which matters only where they are not counted on
   */
  settle(accountId: string, exactly = false): void {
    const account = this.#accounts.get(accountId)
    if (!account) return
    const settled = this.#queries.transaction(() =>
      this.#ledger.charge(account, this.#clock.elapsed(), this.#offset, exactly),
    )
    this.#apply(account, settled)
  }

  /** Settles an account that was not settled for as long as a heartbeat takes: the clock was moved. */
  catchUp(accountId: string): void {
    const account = this.#accounts.get(accountId)
    if (account && this.#clock.elapsed() - account.settledAt >= HEARTBEAT_MS) this.settle(accountId)
  }

  /** Charges a task or a build. Whether the budget allows it is `checkBudget`, before. */
  charge(accountId: string, serverId: string, what: 'task' | 'build'): void {
    this.#queries.transaction(() => {
      this.settle(accountId)
      const { plan } = this.#plans.of(accountId)
      const units = toUnits(plan[`credits_per_${what}`])
      this.#ledger.add(accountId, serverId, monthOf(this.#now()), units)
      this.settle(accountId)
    })
  }

  /** Says what an account has used in this month, in credits. The sum of its servers' use, and of those that are gone. */
  setUsed(accountId: string, credits: number): void {
    this.#queries.transaction(() => {
      this.settle(accountId)
      const usage = { ...this.#usageNow(accountId), used: toUnits(credits) }
      this.#usage.keep(usage, this.#plans.of(accountId).cap)
      this.settle(accountId)
    })
  }

  /** The plan or the cap of an account is another from now on; it was settled before. */
  termsChanged(accountId: string): void {
    const { rates, cap } = this.#termsOf(accountId)
    for (const run of this.#accounts.get(accountId)?.runs ?? []) run.rate = rates(run.tier)
    this.#queries.transaction(() => {
      this.#usage.keep(this.#usageNow(accountId), cap)
      this.settle(accountId)
    })
  }

  /** Resolves when the servers of an account sleep, where its budget is used up. */
  asleep(accountId: string): Promise<void> {
    return this.#atCap.done(accountId)
  }

  /** What an account has used in the month that is now, and its cap, in credits. */
  budget(accountId: string): { month: string; used: number; cap: number } {
    this.settle(accountId)
    const { month, used } = this.#usageNow(accountId)
    return { month, used: toCredits(used), cap: toCredits(this.#plans.of(accountId).cap) }
  }

  /** Whether the budget of an account is used up. */
  isCapped(accountId: string): boolean {
    this.settle(accountId)
    return this.#usageNow(accountId).used >= this.#plans.of(accountId).cap
  }

  /** @throws BerthError where the budget is used up, with the given code */
  checkBudget(accountId: string, code: ErrorCode = 'budget_exceeded'): void {
    if (!this.isCapped(accountId)) return
    const { month, cap } = this.budget(accountId)
    throw new BerthError(
      code,
      `The account has used its budget of ${cap} credits for ${month}. Raise its budget cap, or wait until ${toIso(monthEnd(this.#now()))}.`,
    )
  }

  /** Charges everything until now and measures no more. */
  close(): void {
    this.#unsubscribe()
    this.#stopBeating()
    this.#beat()
    for (const account of [...this.#accounts.values()]) this.#drop(account)
  }

  #now(): number {
    return this.#accounts.size === 0 ? this.#clock.now() : this.#clock.elapsed() + this.#offset
  }

  #usageNow(accountId: string) {
    return this.#usage.read(accountId, monthOf(this.#now()))
  }

  #termsOf(accountId: string) {
    const { plan, cap } = this.#plans.of(accountId)
    return { cap, rates: (tier: TierName) => unitsPerSecond(plan.credits_per_hour[tier]) }
  }

  #idle(id: string): Account {
    return { id, runs: [], settledAt: this.#clock.elapsed(), timer: null }
  }

  #drop(account: Account): void {
    account.timer?.cancel()
    this.#accounts.delete(account.id)
  }

  /** Takes over what was settled, sets the timer for what comes next, and has servers sleep. */
  #apply(account: Account, { runs, settledAt, wake, capped }: Settled): void {
    account.runs = runs
    account.settledAt = settledAt
    account.timer?.cancel()
    account.timer = null
    if (runs.length === 0) return
    account.timer = this.#clock.after(wake - this.#clock.elapsed(), () => this.#due(account.id))
    if (capped) this.#atCap.begin(account.id)
  }

  /** Resolves when the servers that this puts to sleep do. */
  async #due(accountId: string): Promise<void> {
    try {
      this.settle(accountId)
    } catch (error) {
      this.#logger.error('credits could not be charged; they are at the next chance', { accountId, error })
    }
    await this.asleep(accountId)
  }

  /** The calendar was moved: what was used until now belongs where it was before. */
  async #redate(): Promise<void> {
    for (const { id } of this.#accounts.values()) this.settle(id)
    this.#offset = this.#clock.now() - this.#clock.elapsed()
    for (const { id } of this.#accounts.values()) this.settle(id)
    await this.#atCap.allDone()
  }

  /** A clock that stands has nothing new to write. */
  #beatIfMoved(): void {
    const now = this.#clock.elapsed()
    if ([...this.#accounts.values()].some(({ settledAt }) => settledAt < now)) this.#beat()
  }

  /** Writes all that has accrued, the begun seconds too. */
  #beat(): void {
    // Asked for the time, the clock notices that the machine's calendar was corrected.
    this.#clock.now()
    const to = this.#clock.elapsed()
    const accounts = [...this.#accounts.values()]
    try {
      const settled = this.#queries.transaction(() =>
        accounts.map((one) => this.#ledger.charge(one, to, this.#offset, true)),
      )
      accounts.forEach((account, index) => {
        const one = settled[index]
        if (one) this.#apply(account, one)
      })
    } catch (error) {
      this.#logger.error('credits could not be written; they are at the next chance', { error })
    }
  }

  #stopBeating(): void {
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }
}
