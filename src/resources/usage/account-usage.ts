import { eq } from 'drizzle-orm'
import type { Caller } from '../../http/caller.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import { monthEnd, toCredits } from '../accounts/credits.ts'
import { type DailyUsageRow, dayOf } from '../accounts/daily-usage.ts'
import type { Metering } from '../accounts/metering.ts'
import { accounts } from '../accounts/table.ts'
import type { ServersService } from '../servers/service.ts'
import type { AccountUsage } from './model.ts'

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
export function accountUsage(
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
