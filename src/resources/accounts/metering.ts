import { BerthError, type ErrorCode } from '../../errors.ts'
import { type Clock, type Timer, toIso } from '../../runtime/clock.ts'
import { isDiskFull } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Heartbeat } from '../../storage/data-directory.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import { monthEnd, monthOf, toCredits, toUnits, unitsPerSecond } from './credits.ts'
import { DailyUsage } from './daily-usage.ts'
import { type ChargeResult, Ledger, type RunningAccount } from './ledger.ts'
import type { Plans } from './plans.ts'
import type { TierName } from './tiers.ts'
import { UsageStore } from './usage.ts'

/** Dependencies of metering. */
interface MeteringDependencies {
  queries: Queries
  clock: Clock
  outbox: Outbox
  plans: Plans
  logger: Logger
  changes: Changes
  /** Keeps the time of the last heartbeat over a kill; null if this system cannot. */
  heartbeat: Heartbeat | null
}

/** Milliseconds of real time between two heartbeats. A kill loses at most this much use. */
const HEARTBEAT_MS = 1_000

/** Milliseconds between writes of use that nothing has requested. A power failure loses at most this much. */
const WRITE_MS = 3_600_000

/** The fields of a server that metering needs. */
interface MeteredServer {
  id: string
  accountId: string
  tier: TierName
  carryMs: number
}

/** An account with running servers, and the timer of its next change. */
interface MeteredAccount extends RunningAccount {
  timer: Timer | null
  /** The elapsed time until which its budget is used up or not as at the last charge. */
  nextChangeAt: number
}

/**
 * Charges accounts for the running time of their servers, by whole seconds, in the month (UTC) in which each second
 * ends. Use is computed when something asks for it or changes it, and by one timer for each account when a mark of its
 * budget or the end of a month is due. Until then an idle server causes no write: the database holds until when each
 * server is charged, and the heartbeat until when it ran. So a kill loses the use after the last heartbeat, and nothing
 * is charged twice. Charges and their effects are computed to the millisecond, even if they are processed later.
 */
export class Metering {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #plans: Plans
  readonly #logger: Logger
  readonly #changes: Changes
  /** What servers use by day, up to the last charge. */
  readonly days: DailyUsage
  readonly #usage: UsageStore
  readonly #ledger: Ledger
  readonly #accounts = new Map<string, MeteredAccount>()
  readonly #capAction: CapAction
  #sleepAtCap: (accountId: string) => Promise<void> = async () => {}
  readonly #unsubscribe: () => void
  readonly #heartbeat: Heartbeat | null
  #beating: ReturnType<typeof setInterval> | undefined
  /** The elapsed time of the last beat. */
  #notifiedAt = 0
  /** Calendar time minus elapsed time, milliseconds. It dates charges, and changes if the calendar is corrected. */
  #offset: number

  constructor({ queries, clock, outbox, plans, logger, changes, heartbeat }: MeteringDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#plans = plans
    this.#logger = logger
    this.#changes = changes
    this.#heartbeat = heartbeat
    this.#capAction = new CapAction((accountId) => this.#sleepAtCap(accountId), logger)
    this.#usage = new UsageStore(queries, outbox)
    this.days = new DailyUsage(queries)
    this.#ledger = new Ledger(queries, plans, this.#usage, this.days)
    this.#offset = clock.now() - clock.elapsed()
    this.#unsubscribe = clock.onCorrection(() => this.#redate())
  }

  /**
   * Sets the function that puts an account's servers to sleep when its budget is used up. `sleepAtCap` of the servers
   * does.
   */
  onCapReached(sleep: (accountId: string) => Promise<void>): void {
    this.#sleepAtCap = sleep
  }

  /** Charges the use before a kill of berth. Call it before anything begins. */
  recover(): void {
    const killedAt = this.#heartbeat?.take() ?? null
    const rows = this.#ledger.killed()
    if (rows.length === 0) return
    this.#queries.transaction(() =>
      this.#ledger.chargeKilled(rows, killedAt, (id, tier) => this.#termsOf(id).rates(tier)),
    )
  }

  /**
   * Begins to charge a server. Call it after the commit that makes the server run. It does nothing if the server runs
   * already.
   */
  begin({ id, accountId, tier, carryMs }: MeteredServer): void {
    const { rates } = this.#termsOf(accountId)
    this.accrue(accountId)
    const account = this.#accounts.get(accountId) ?? this.#idle(accountId)
    if (account.runs.some((run) => run.id === id)) return
    const now = this.#clock.elapsed()
    const run = { id, tier, rate: rates(tier), since: now - carryMs }
    account.runs.push(run)
    this.#accounts.set(accountId, account)
    this.#ledger.write(run, 0, now, this.#offset)
    this.accrue(accountId)
    this.#beating ??= setInterval(() => this.#beat(), HEARTBEAT_MS).unref()
  }

  /**
   * Ends the charging of a server. Call it in the transaction that ends the server, before its row is deleted.
   *
   * @returns a function to call after the commit
   */
  end(serverId: string): () => void {
    const account = [...this.#accounts.values()].find(({ runs }) => runs.some(({ id }) => id === serverId))
    if (!account) return () => {}
    this.accrue(account.id, serverId)
    this.#ledger.end(serverId)
    return () => {
      account.runs = account.runs.filter(({ id }) => id !== serverId)
      if (account.runs.length === 0) this.#drop(account)
      else this.accrue(account.id)
      if (this.#accounts.size === 0) this.#stopHeartbeat()
    }
  }

  /**
   * Charges an account for its use until now, and acts on the result.
   *
   * @param exactly also writes the begun seconds: of all servers, or of the one with this id, which ends
   */
  accrue(accountId: string, exactly: boolean | string = false): void {
    const account = this.#accounts.get(accountId)
    if (!account) return
    const charged = this.#queries.transaction(() =>
      this.#ledger.charge(account, this.#clock.elapsed(), this.#offset, exactly),
    )
    this.#apply(account, charged)
  }

  /** As `accrue`, for what is only read: on a full disk the last charge stays the current one. */
  accrueIfPossible(accountId: string): void {
    try {
      this.accrue(accountId)
    } catch (error) {
      if (!isDiskFull(error)) throw error
    }
  }

  /** Charges an account if its last charge is older than a heartbeat, as after a move of the clock. */
  accrueIfStale(accountId: string): void {
    const account = this.#accounts.get(accountId)
    if (account && this.#clock.elapsed() - account.chargedUntil >= HEARTBEAT_MS)
      this.accrueIfPossible(accountId)
  }

  /** Charges a task or a build. Call `checkBudget` before. */
  charge(accountId: string, serverId: string, what: 'task' | 'build'): void {
    this.#queries.transaction(() => {
      this.accrue(accountId)
      const { plan } = this.#plans.of(accountId)
      const units = toUnits(plan[`credits_per_${what}`])
      this.#ledger.add(accountId, serverId, what, this.#now(), units)
      this.accrue(accountId)
      this.#notify(accountId)
      this.#changes.notify('server', serverId, accountId, serverId)
    })
  }

  /** Sets an account's use in this month, in credits. Use of single servers does not change. */
  setUsed(accountId: string, credits: number): void {
    this.#queries.transaction(() => {
      this.accrue(accountId)
      const usage = { ...this.#usageNow(accountId), used: toUnits(credits) }
      this.#usage.save(usage, this.#plans.of(accountId).cap)
      this.accrue(accountId)
      this.#notify(accountId)
    })
  }

  /** Applies a changed plan or cap to an account. Call `accrue` before the change. */
  applyTerms(accountId: string): void {
    const { rates, cap } = this.#termsOf(accountId)
    for (const run of this.#accounts.get(accountId)?.runs ?? []) run.rate = rates(run.tier)
    this.#queries.transaction(() => {
      this.#usage.save(this.#usageNow(accountId), cap)
      this.accrue(accountId)
      this.#notify(accountId)
    })
  }

  /** Resolves when the servers of an account sleep, if its budget is used up. */
  whenAsleep(accountId: string): Promise<void> {
    return this.#capAction.whenDone(accountId)
  }

  /** Returns an account's use in the current month and its cap, in credits. */
  budget(accountId: string): { month: string; used: number; cap: number } {
    this.accrueIfPossible(accountId)
    const { month, used } = this.#usageNow(accountId)
    return { month, used: toCredits(used), cap: toCredits(this.#plans.of(accountId).cap) }
  }

  /** Reports whether an account's budget is used up. */
  isCapped(accountId: string): boolean {
    const account = this.#accounts.get(accountId)
    // Asked at each command. A charge takes time in proportion to the servers of the account.
    if (account && this.#clock.elapsed() >= account.nextChangeAt) this.accrueIfPossible(accountId)
    return this.#usageNow(accountId).used >= this.#plans.of(accountId).cap
  }

  /**
   * @throws BerthError with the given code if the budget is used up
   */
  checkBudget(accountId: string, code: ErrorCode = 'budget_exceeded'): void {
    if (!this.isCapped(accountId)) return
    const { month, cap } = this.budget(accountId)
    throw new BerthError(
      code,
      `The account has used its budget of ${cap} credits for ${month}. Raise its budget cap, or wait until ${toIso(monthEnd(this.#now()))}.`,
    )
  }

  /** Charges everything until now and stops metering. */
  close(): void {
    this.#unsubscribe()
    this.#stopHeartbeat()
    this.writeAll()
    this.days.prune(this.#now())
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

  #idle(id: string): MeteredAccount {
    const now = this.#clock.elapsed()
    return { id, runs: [], chargedUntil: now, timer: null, nextChangeAt: now }
  }

  #drop(account: MeteredAccount): void {
    account.timer?.cancel()
    this.#accounts.delete(account.id)
  }

  /**
   * Adopts the result of a charge, sets the timer for the next change, and puts servers to sleep if the budget is
   * used up.
   */
  #apply(account: MeteredAccount, { runs, chargedUntil, nextChangeAt, isCapped }: ChargeResult): void {
    account.runs = runs
    account.chargedUntil = chargedUntil
    account.nextChangeAt = nextChangeAt
    account.timer?.cancel()
    account.timer = null
    if (runs.length === 0) return
    account.timer = this.#clock.after(
      nextChangeAt - this.#clock.elapsed(),
      () => this.#handleChange(account.id),
      { name: 'account.budget', id: account.id },
    )
    if (isCapped) this.#capAction.request(account.id)
  }

  /** Handles the next change of an account. Resolves when the servers that it puts to sleep do. */
  async #handleChange(accountId: string): Promise<void> {
    try {
      this.accrue(accountId)
    } catch (error) {
      this.#logger.error('credits could not be charged; they are at the next chance', { accountId, error })
    }
    await this.whenAsleep(accountId)
  }

  /** Follows a correction of the calendar. Use until now keeps its old dates. */
  async #redate(): Promise<void> {
    for (const { id } of this.#accounts.values()) this.accrue(id)
    // Its date and those in the database have to be of one calendar.
    this.#heartbeat?.take()
    this.#offset = this.#clock.now() - this.#clock.elapsed()
    for (const { id } of this.#accounts.values()) this.accrue(id, true)
    if (this.#accounts.size > 0) this.#beat()
    await this.#capAction.whenAllDone()
  }

  /** Notes that the servers run. Writes their use if that is due; never while a frozen clock does not move. */
  #beat(): void {
    // Reading the time makes the clock notice a correction of the machine's calendar.
    this.#clock.now()
    const now = this.#clock.elapsed()
    this.#heartbeat?.beat(now + this.#offset)
    const due = now - (this.#heartbeat === null ? 1 : WRITE_MS)
    if ([...this.#accounts.values()].some(({ chargedUntil }) => chargedUntil <= due)) this.writeAll()
    // While the clock stands, nothing is charged.
    if (now > this.#notifiedAt) for (const { id } of this.#accounts.values()) this.#notify(id)
    this.#notifiedAt = now
  }

  #notify(accountId: string): void {
    this.#changes.notify('account', accountId, accountId)
  }

  /** Writes all use, including the begun seconds. */
  writeAll(): void {
    const to = this.#clock.elapsed()
    const accounts = [...this.#accounts.values()]
    try {
      const charged = this.#queries.transaction(() =>
        accounts.map((one) => this.#ledger.charge(one, to, this.#offset, true)),
      )
      accounts.forEach((account, index) => {
        const one = charged[index]
        if (one) this.#apply(account, one)
      })
    } catch (error) {
      this.#logger.error('credits could not be written; they are at the next chance', { error })
    }
  }

  #stopHeartbeat(): void {
    clearInterval(this.#beating)
    this.#beating = undefined
    this.#heartbeat?.take()
  }
}

/**
 * Runs an action when an account's budget is used up. The action begins after the current transaction. It runs once
 * at a time for each account, and once more if it was requested meanwhile.
 */
class CapAction {
  readonly #act: (accountId: string) => Promise<void>
  readonly #logger: Logger
  readonly #running = new Map<string, Promise<void>>()
  readonly #requestedAgain = new Set<string>()

  /** @param act the action, for an account whose budget is used up */
  constructor(act: (accountId: string) => Promise<void>, logger: Logger) {
    this.#act = act
    this.#logger = logger
  }

  /** Requests the action for an account. */
  request(accountId: string): void {
    if (this.#running.has(accountId)) this.#requestedAgain.add(accountId)
    else this.#running.set(accountId, this.#run(accountId))
  }

  /** Resolves when the requested actions of an account have ended. */
  async whenDone(accountId: string): Promise<void> {
    for (let run = this.#running.get(accountId); run; run = this.#running.get(accountId)) await run
  }

  /** Resolves when all requested actions have ended. */
  async whenAllDone(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((accountId) => this.whenDone(accountId)))
  }

  async #run(accountId: string): Promise<void> {
    await Promise.resolve()
    try {
      await this.#act(accountId)
    } catch (error) {
      this.#requestedAgain.delete(accountId)
      this.#logger.error('servers over budget could not be put to sleep', { accountId, error })
    }
    if (this.#requestedAgain.delete(accountId)) this.#running.set(accountId, this.#run(accountId))
    else this.#running.delete(accountId)
  }
}
