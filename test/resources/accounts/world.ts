import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { toUnits } from '../../../src/resources/accounts/credits.ts'
import { Metering } from '../../../src/resources/accounts/metering.ts'
import { DEFAULT_PLAN } from '../../../src/resources/accounts/plan.ts'
import { Plans } from '../../../src/resources/accounts/plans.ts'
import { accounts, accountUsage, dailyUsage } from '../../../src/resources/accounts/table.ts'
import type { TierName } from '../../../src/resources/accounts/tiers.ts'
import type { Changes, ChangeType } from '../../../src/resources/changes/types.ts'
import { Outbox } from '../../../src/resources/events/outbox.ts'
import { events } from '../../../src/resources/events/table.ts'
import { ServerRecords } from '../../../src/resources/servers/records.ts'
import { servers } from '../../../src/resources/servers/table.ts'
import { ChangeNotifier } from '../../../src/runtime/change-notifier.ts'
import type { SteerableClock } from '../../../src/runtime/clock.ts'
import { createIds } from '../../../src/runtime/ids.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { seededRandom } from '../../../src/runtime/random.ts'
import { RequestContext } from '../../../src/runtime/request-context.ts'
import { type Database, openDatabase } from '../../../src/storage/database.ts'
import type { Heartbeat } from '../../../src/storage/heartbeat.ts'
import { MovedClock } from '../../support/clock.ts'

/** A heartbeat that the test beats itself. */
class KeptHeartbeat implements Heartbeat {
  #at: number | null = null

  take(): number | null {
    const at = this.#at
    this.#at = null
    return at
  }

  beat(at: number): void {
    this.#at = at
  }
}

/**
 * Accounts and the records of their servers over a real database and a moved clock: everything but
 * the sandboxes. It can crash: it is abandoned as it stands, and opened anew on the same file.
 */
export class World implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-metering-'))
  clock: SteerableClock
  metering!: Metering
  records!: ServerRecords
  database!: Database
  readonly changes: Changes = new ChangeNotifier<ChangeType>()
  readonly logged: string[] = []
  /** In memory that a crash leaves as it is. */
  readonly heartbeat = new KeptHeartbeat()

  constructor(now: number, clock: SteerableClock = new MovedClock(now)) {
    this.clock = clock
    this.open()
  }

  open(): void {
    const { clock } = this
    const logger = createLogger(
      'warn',
      (line) => this.logged.push(line),
      () => 0,
    )
    this.database = openDatabase(join(this.folder, 'berth.db'))
    const { queries } = this.database
    const ids = createIds(clock, (prefix) => seededRandom(1, `${prefix} ${clock.now()}`))
    const outbox = new Outbox({ requests: new RequestContext(), queries, clock, ids, deleteOld: null })
    const plans = new Plans(this.database, DEFAULT_PLAN)
    const { changes, heartbeat } = this
    this.metering = new Metering({ queries, clock, outbox, plans, logger, changes, heartbeat })
    this.records = new ServerRecords({
      queries,
      outbox,
      metering: this.metering,
      changes,
      listeners: { serverDeleting() {} },
    })
    this.metering.onCapReached(async (accountId) => {
      for (const { id } of this.records.listByAccount(accountId)) this.records.markSleeping(id)
    })
  }

  /** Ends without a word, as by kill -9, and starts again after `ms` milliseconds. */
  crash(ms: number): void {
    this.database.close()
    this.clock = new MovedClock(this.clock.now() + ms)
    this.open()
    this.metering.recover()
    for (const row of this.records.running()) {
      if (this.metering.isCapped(row.accountId)) this.records.markSleeping(row.id)
      else this.records.markRunning(row)
    }
  }

  account(id: string, cap: number): void {
    this.database.queries
      .insert(accounts)
      .values({ id, label: id, createdAt: 0, budgetCap: toUnits(cap) })
      .run()
  }

  setCap(id: string, cap: number): void {
    this.metering.accrue(id)
    this.database.queries
      .update(accounts)
      .set({ budgetCap: toUnits(cap) })
      .where(eq(accounts.id, id))
      .run()
    this.metering.applyTerms(id)
  }

  /** A server that sleeps. */
  server(id: string, accountId: string, tier: TierName): void {
    const fixed = { task: '', region: 'us-east', status: 'sleeping', handle: { kind: 'none' } } as const
    this.records.add({ id, accountId, tier, createdAt: 0, ...fixed })
  }

  start(id: string): void {
    const row = this.records.find(id)
    if (!row) throw new Error(`no server ${id}`)
    this.metering.checkBudget(row.accountId)
    this.records.markRunning(row)
  }

  /** Units charged to each server. */
  charged(): Record<string, number> {
    const rows = this.database.queries.select().from(servers).all()
    return Object.fromEntries(rows.map(({ id, creditUnits }) => [id, creditUnits]))
  }

  running(): string[] {
    return this.records.running().map(({ id }) => id)
  }

  /** Units charged to each account and month. */
  used(): Record<string, number> {
    const rows = this.database.queries.select().from(accountUsage).all()
    return Object.fromEntries(
      rows
        .filter(({ used }) => used > 0)
        .map(({ accountId, month, used }) => [`${accountId} ${month}`, used]),
    )
  }

  /** Units charged to each account and day. */
  days(): Record<string, number> {
    const sums: Record<string, number> = {}
    for (const { accountId, day, units } of this.database.queries.select().from(dailyUsage).all()) {
      sums[`${accountId} ${day}`] = (sums[`${accountId} ${day}`] ?? 0) + units
    }
    return sums
  }

  /** The quota events, with the moment of each. */
  quota(): string[] {
    const rows = this.database.queries.select().from(events).orderBy(events.seq).all()
    return rows
      .filter(({ event }) => event.startsWith('quota.'))
      .map(({ event, accountId, createdAt, data }) => `${event} ${accountId} ${createdAt} ${data.budget_cap}`)
  }

  [Symbol.dispose](): void {
    this.metering.close()
    this.database.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
