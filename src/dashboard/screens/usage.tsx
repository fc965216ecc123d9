import type { ResponseOf } from '../../route-client/client.ts'
import { serverLabel, shortId } from '../components/copy.tsx'
import { Failure, Loading, ScreenPage } from '../components/page.tsx'
import { Time } from '../components/time.tsx'
import { formatCredits, Meter } from '../components/usage-meters.tsx'
import { useDashboard } from '../dashboard.ts'
import { useLive } from '../store/use-live.ts'

type AccountUsage = ResponseOf<'usage.account'>['usage']

/** Days that are shown. */
const DAYS = 30

/** What the account has spent: against its cap, by day and by server. */
export default function UsageScreen() {
  const { api } = useDashboard()
  const { value, load } = useLive<AccountUsage>(
    async () => (await api.call('usage.account', { query: { days: DAYS } })).usage,
    // Sent when something was charged.
    'account',
    () => true,
    [api],
  )
  return (
    <ScreenPage title="Usage">
      {value instanceof Error && <Failure error={value} retry={load} />}
      {value === null && <Loading />}
      {value !== null && !(value instanceof Error) && <Spending usage={value} />}
    </ScreenPage>
  )
}

function Spending({ usage }: { usage: AccountUsage }) {
  const { credits_used: used, budget_cap: cap, days, month_ends_at: ends } = usage
  const most = Math.max(...days.map(({ credits }) => credits), 0)
  const last = days.at(-1)
  const unknown = daysBefore(days)
  const servers = byServer(days)
  return (
    <>
      <section class="panel spending">
        <p>
          <strong>{formatCredits(used)} credits</strong>
          {cap !== null && ` of ${cap}`} used this month, which ends <Time at={ends} />.
        </p>
        {cap !== null && (
          <Meter label="Budget" used={used} most={cap} text={`${formatCredits(used)} of ${cap}`} />
        )}
        {cap === null && <p class="quiet">There is no cap.</p>}
      </section>
      <h2>Credits by day</h2>
      <div class="days-chart">
        <p class="days-scale quiet" aria-hidden="true">
          <span>{formatCredits(most)}</span>
          <span>0</span>
        </p>
        <ol class="days">
          {unknown.map((day) => (
            <li key={day} title={`${day}: not known`} />
          ))}
          {days.map(({ day, credits }) => (
            <li key={day} title={`${day}: ${formatCredits(credits)} credits`}>
              <span class="bar" style={{ height: `${most === 0 ? 0 : (credits / most) * 100}%` }} />
              <span class="visually-hidden">
                {day}: {formatCredits(credits)} credits
              </span>
            </li>
          ))}
        </ol>
        <p class="days-range quiet" aria-hidden="true">
          <span>{unknown[0] ?? days[0]?.day}</span>
          <span>{last && `${last.day}: ${formatCredits(last.credits)}`}</span>
        </p>
      </div>
      {unknown.length > 0 && <p class="quiet">Use is known since {days[0]?.day}.</p>}
      <h2>Credits by server</h2>
      {servers.length === 0 ? (
        <p class="quiet">Nothing was charged in these days.</p>
      ) : (
        <table class="plain">
          <thead>
            <tr>
              <th>Server</th>
              <th class="number">for running</th>
              <th class="number">for tasks</th>
              <th class="number">for builds</th>
              <th class="number">in all</th>
            </tr>
          </thead>
          <tbody>
            {servers.map(({ server_id: id, task, running, tasks, builds, credits }) => (
              <tr key={id}>
                <td>
                  {task === null ? (
                    <span class="quiet">
                      <span title={id}>{shortId(id)}</span> (deleted)
                    </span>
                  ) : (
                    <a href={`/dashboard/servers/${id}`}>
                      <bdi>{serverLabel(id, task)}</bdi>
                    </a>
                  )}
                </td>
                <td class="number">{formatCredits(running)}</td>
                <td class="number">{formatCredits(tasks)}</td>
                <td class="number">{formatCredits(builds)}</td>
                <td class="number">{formatCredits(credits)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

/** Returns the days of the chart before the first of which use is known, the oldest first. */
function daysBefore(days: AccountUsage['days']): string[] {
  const first = Date.parse(days[0]?.day ?? '')
  if (Number.isNaN(first)) return []
  const missing = Math.max(0, DAYS - days.length)
  return Array.from({ length: missing }, (_, at) =>
    new Date(first - (missing - at) * 86_400_000).toISOString().slice(0, 10),
  )
}

type ServerUsage = AccountUsage['days'][number]['servers'][number]

/** Adds up the charges of each server, the highest first. */
function byServer(days: AccountUsage['days']): ServerUsage[] {
  const sums = new Map<string, ServerUsage>()
  for (const one of days.flatMap(({ servers }) => servers)) {
    const sum = sums.get(one.server_id)
    sums.set(one.server_id, {
      ...one,
      credits: one.credits + (sum?.credits ?? 0),
      running: one.running + (sum?.running ?? 0),
      tasks: one.tasks + (sum?.tasks ?? 0),
      builds: one.builds + (sum?.builds ?? 0),
    })
  }
  return [...sums.values()].sort((a, b) => b.credits - a.credits)
}
