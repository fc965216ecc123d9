import { eq } from 'drizzle-orm'
import { ComputeError, type Sandbox, type ServerConsumption } from '../../compute/sandbox.ts'
import { BerthError } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { within } from '../../runtime/wait.ts'
import type { Queries } from '../../storage/database.ts'
import { monthEnd, toCredits } from '../accounts/credits.ts'
import { type DailyUsageRow, dayOf } from '../accounts/daily-usage.ts'
import type { Metering } from '../accounts/metering.ts'
import { accounts } from '../accounts/table.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { LiveUsage } from './live.ts'
import type { AccountUsage, ServerUsage, SingleServerUsage } from './model.ts'

/** Milliseconds between two looks from which the use of processors follows. */
const SHORTEST_MS = 250
const LONGEST_MS = 30_000

/** Servers that are measured before other requests get their turn. */
const BATCH = 16

/** Milliseconds in which a server that is reached says what it uses. */
const RESPONSE_MS = 3_000

/** What a running server uses. */
interface Measured {
  readonly cpuMs: number
  /** Milliseconds in which it used them. */
  readonly inMs: number
  readonly memoryBytes: number
  readonly processes: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Why it could not be measured, a sentence: then it is what is known of before. */
  readonly unreachable: string | null
}

/** A server that uses nothing. */
const nothing = (at: number): Measured => ({
  ...{ cpuMs: 0, inMs: 0, memoryBytes: 0, processes: 0 },
  ...{ at, unreachable: null },
})

/**
 * Measures what servers use, when somebody asks. Asking does not count as a use of a server: it neither wakes it nor keeps it awake.
 */
export class UsageService {
  readonly #dependencies: AccountUsageDependencies
  readonly #servers: ServersService
  readonly #clock: Clock
  /** What servers use, as it changes. */
  readonly live: LiveUsage
  /** The last looks at servers that run. */
  readonly #looks = new WeakMap<Sandbox, ServerConsumption>()
  /** Looks under way: one that is not answered is not repeated. */
  readonly #underWay = new WeakMap<Sandbox, Promise<ServerConsumption>>()
  /** What was measured last of servers that run. */
  readonly #last = new WeakMap<Sandbox, Measured>()

  constructor(dependencies: AccountUsageDependencies & { logger: Logger }) {
    this.#dependencies = dependencies
    this.#servers = dependencies.servers
    this.#clock = dependencies.clock
    this.live = new LiveUsage(this, dependencies.logger)
  }

  /** Checks that the caller reaches a server. @throws BerthError 404 */
  check(caller: Caller, serverId: string): void {
    this.#servers.getRow(caller, serverId)
  }

  /** Measures the servers that run, of those that the caller reaches. */
  async running(caller: Caller): Promise<Map<string, ServerUsage>> {
    const rows = this.#servers.list(caller).flatMap(({ id }) => {
      const row = this.#servers.lifecycle.sandbox(id) && this.#servers.records.find(id)
      return row ? [row] : []
    })
    const measured = await this.#measure(rows)
    const usages = rows.flatMap(({ id }): [string, ServerUsage][] => {
      const [found, row] = [measured.get(id), this.#servers.records.find(id)]
      return found && row ? [[id, this.#usageOf(row, found)]] : []
    })
    return new Map(usages)
  }

  /** Returns the usage of a server that does not run; undefined if there is no such server. */
  atRest(serverId: string): ServerUsage | undefined {
    const row = this.#servers.records.find(serverId)
    return row && this.#usageOf(row)
  }

  /** Returns the credits of the caller's account. @param days how many, up to today */
  account(caller: Caller, days?: number): AccountUsage {
    return accountCredits(caller, this.#dependencies, days)
  }

  /**
   * Returns what each server uses that the caller reaches, newest first.
   *
   * @param isQuick whether to look only once: the use of processors is rough then if nobody has looked lately
   */
  async list(caller: Caller, isQuick = false): Promise<ServerUsage[]> {
    const rows = (await this.#servers.listMeasured(caller)).map(({ id }) => this.#servers.getRow(caller, id))
    const measured = await this.#measure(rows, isQuick)
    return rows.map((row) => this.#usageOf(row, measured.get(row.id)))
  }

  /**
   * Returns what a server uses.
   *
   * @throws BerthError 404, 502
   */
  async get(caller: Caller, serverId: string): Promise<SingleServerUsage> {
    const row = this.#servers.getRow(caller, serverId)
    const sandbox = this.#servers.lifecycle.sandbox(serverId)
    const [measured, ports] = await Promise.all([
      this.#measure([row]),
      sandbox === undefined ? [] : portsOf(sandbox),
      // Measures its storage if that may have changed.
      this.#servers.get(caller, serverId),
    ])
    const now = this.#servers.getRow(caller, serverId)
    return { ...this.#usageOf(now, measured.get(serverId)), ports }
  }

  #usageOf(row: ServerRow, measured = nothing(this.#clock.now())): ServerUsage {
    const { cpuMs, inMs, memoryBytes, processes, at, unreachable } = measured
    const limits = this.#servers.lifecycle.limits(row)
    const lastUsedAt = this.#servers.lifecycle.lastUsedAt(row)
    const share = inMs <= 0 ? 0 : Math.max(0, cpuMs) / inMs / limits.cpus
    return {
      server_id: row.id,
      status: row.status,
      cpu_percent: Math.round(share * 1_000) / 10,
      cpus: limits.cpus,
      memory_bytes: memoryBytes,
      memory_limit_bytes: limits.memoryBytes,
      storage_bytes: row.storageBytes,
      storage_limit_bytes: limits.storageBytes,
      processes,
      processes_limit: limits.processes,
      credits_used: toCredits(row.creditUnits),
      last_used_at: lastUsedAt === null ? null : toIso(lastUsedAt),
      measured_at: toIso(at),
      unreachable,
    }
  }

  /**
   * Measures servers that run; the others are not in the result. Looks twice at those not looked at lately. Of one that does not
   * respond, what was measured last is in the result.
   */
  async #measure(rows: readonly ServerRow[], isQuick = false): Promise<Map<string, Measured>> {
    const running = rows.flatMap(({ id, createdAt }) => {
      const sandbox = this.#servers.lifecycle.sandbox(id)
      return sandbox === undefined || sandbox.ending ? [] : [{ id, createdAt, sandbox }]
    })
    const measured = new Map<string, Measured>()
    const unsure: typeof running = []
    const look = async (one: (typeof running)[number], isSecond: boolean): Promise<void> => {
      const { id, createdAt, sandbox } = one
      const now = await this.#consumptionOf(sandbox)
      if (now === null) return
      if (typeof now === 'string') {
        measured.set(id, { ...(this.#last.get(sandbox) ?? nothing(createdAt)), unreachable: now })
        return
      }
      const before = this.#looks.get(sandbox)
      const inMs = before === undefined ? Number.POSITIVE_INFINITY : now.at - before.at
      if (!isSecond && (inMs < SHORTEST_MS || inMs > LONGEST_MS)) unsure.push(one)
      // Another caller's look of a moment ago is kept, so that the next one is late enough.
      if (inMs >= SHORTEST_MS) this.#looks.set(sandbox, now)
      const { memoryBytes, processes } = now
      const cpuMs = now.cpuMs - (before?.cpuMs ?? now.cpuMs)
      const at = this.#clock.now()
      const found = { cpuMs, inMs, memoryBytes, processes, at, unreachable: null }
      measured.set(id, found)
      this.#last.set(sandbox, found)
    }
    await inBatches(running, (one) => look(one, false))
    if (unsure.length > 0 && !isQuick) {
      await Bun.sleep(SHORTEST_MS)
      await inBatches(unsure, (one) => look(one, true))
    }
    return measured
  }

  /** Returns what a server uses; a sentence if it cannot be reached, null if it has stopped. */
  async #consumptionOf(sandbox: Sandbox): Promise<ServerConsumption | string | null> {
    const look =
      this.#underWay.get(sandbox) ?? sandbox.consumption().finally(() => this.#underWay.delete(sandbox))
    this.#underWay.set(sandbox, look)
    try {
      return await within(RESPONSE_MS, look, SILENT)
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      return sandbox.ending ? null : error.message
    }
  }
}

const SILENT = `The server has not responded for ${RESPONSE_MS / 1_000} seconds. Check that its engine and its machine run.`

/** Runs work for each item, and lets other requests have their turn between batches. */
async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH) {
    await Promise.all(items.slice(at, at + BATCH).map(work))
    if (at + BATCH < items.length) await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

/** Milliseconds in which a server that is reached lists its processes, which it looks at twice. */
const PORTS_MS = RESPONSE_MS + SHORTEST_MS

/**
 * Returns the TCP ports that programs of a server listen on, ascending.
 *
 * @throws BerthError 502
 */
async function portsOf(sandbox: Sandbox): Promise<number[]> {
  try {
    const processes = await within(PORTS_MS, sandbox.processes(), null)
    if (processes === null) throw new ComputeError(SILENT)
    return [...new Set(processes.flatMap(({ ports }) => ports))].sort((a, b) => a - b)
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error
    if (sandbox.ending) return []
    throw new BerthError('compute_backend_error', `The server could not be measured: ${error.message}`)
  }
}

const DAY_MS = 86_400_000

/** Days that are shown by default. */
const DEFAULT_DAYS = 30

/** Dependencies of the usage of accounts. */
export interface AccountUsageDependencies {
  queries: Queries
  servers: ServersService
  clock: Clock
  metering: Metering
}

/** Sums of units on a day. */
type DaySums = Map<string, Record<DailyUsageRow['kind'], number>>

/** Returns the credits of the caller's account: of this month against its budget, and by day and server. */
export function accountCredits(
  { accountId }: Caller,
  { queries, servers, clock, metering }: AccountUsageDependencies,
  count = DEFAULT_DAYS,
): AccountUsage {
  const { month, used, cap } = metering.budget(accountId)
  const now = clock.now()
  const rows = metering.days.since(accountId, dayOf(now - (Math.max(count, DAYS_OF_MONTH) - 1) * DAY_MS))
  const knownSince = firstKnownDay(accountId, { queries, metering }, now)
  const wanted = dayOf(now - (count - 1) * DAY_MS)
  const sums = new Map<string, DaySums>()
  for (const { day, serverId, kind, units } of rows) {
    const ofDay = sums.get(day) ?? new Map()
    sums.set(day, ofDay)
    const ofServer = ofDay.get(serverId) ?? { running: 0, task: 0, build: 0 }
    ofDay.set(serverId, ofServer)
    ofServer[kind] += units
  }
  const known = rows.filter(({ day }) => day.startsWith(month)).reduce((sum, { units }) => sum + units, 0)
  const days: AccountUsage['days'] = []
  for (let at = now - (count - 1) * DAY_MS; at <= now; at += DAY_MS) {
    const day = dayOf(at)
    if (day >= wanted && day >= knownSince) days.push(toDay(day, sums.get(day) ?? new Map(), servers))
  }
  return {
    month,
    month_ends_at: toIso(monthEnd(now)),
    credits_used: used,
    budget_cap: cap,
    credits_remaining: roundCredits(Math.max(0, cap - used)),
    credits_unattributed: roundCredits(Math.max(0, used - toCredits(known))),
    known_since: knownSince,
    days,
  }
}

/** Most days of a calendar month. */
const DAYS_OF_MONTH = 31

/** Returns the first day whose use is known: the account's first, unless it used something before days were kept. */
function firstKnownDay(
  accountId: string,
  { queries, metering }: Pick<AccountUsageDependencies, 'queries' | 'metering'>,
  now: number,
): string {
  if (metering.days.hasEarlierUse(accountId)) {
    const [first] = metering.days.since(accountId, '0')
    return first?.day ?? dayOf(now)
  }
  const account = queries
    .select({ createdAt: accounts.createdAt })
    .from(accounts)
    .where(eq(accounts.id, accountId))
    .get()
  return dayOf(Math.min(account?.createdAt ?? now, now))
}

function toDay(day: string, sums: DaySums, servers: ServersService): AccountUsage['days'][number] {
  const used = [...sums].map(([id, { running, task, build }]) => ({
    units: running + task + build,
    server_id: id,
    task: servers.records.find(id)?.task ?? null,
    running: toCredits(running),
    tasks: toCredits(task),
    builds: toCredits(build),
  }))
  return {
    day,
    credits: toCredits(used.reduce((sum, { units }) => sum + units, 0)),
    servers: used
      .sort((a, b) => b.units - a.units)
      .map(({ units, ...server }) => ({ ...server, credits: toCredits(units) })),
  }
}

/** Credits without the rounding error of a difference. */
const roundCredits = (credits: number): number => Math.round(credits * 1e9) / 1e9
