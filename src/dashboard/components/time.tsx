import { useDashboard } from '../dashboard.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Returns how long something took or is away, in its largest unit: `12 min`. */
export function span(ms: number): string {
  const most = Math.abs(ms)
  if (most < 1_000) return `${Math.round(most)} ms`
  if (most < 10_000) return `${(most / 1_000).toFixed(1)} s`
  if (most < MINUTE) return `${Math.round(most / 1_000)} s`
  if (most < HOUR) return `${Math.floor(most / MINUTE)} min`
  if (most < DAY) return `${Math.floor(most / HOUR)} h`
  return `${Math.floor(most / DAY)} d`
}

/** Returns a time relative to now: `12 min ago`, `in 3 h`, `now`. */
export function relative(at: number, now: number): string {
  const away = now - at
  if (Math.abs(away) < 5_000) return 'now'
  return away > 0 ? `${span(away)} ago` : `in ${span(away)}`
}

/** A time of day by the second, in UTC as everything that berth writes, with the date if that is not today. */
export function TimeOfDay({ at }: { at: number }) {
  const { clock } = useDashboard()
  const iso = new Date(at).toISOString()
  return (
    <time dateTime={iso} title={iso}>
      {iso.startsWith(clock.today.value) ? iso.slice(11, 19) : iso.slice(5, 16).replace('T', ' ')}
    </time>
  )
}

/** A time by the second, in UTC, for things kept while the clock may have been moved. */
export const DateAndTime = ({ at }: { at: string }) => (
  <time dateTime={at} title={at}>
    {new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC
  </time>
)

/** Returns how far away a time is that something is due at, down to its last second: `in 4.2 s`, then `now`. */
const dueIn = (at: number, now: number): string => (at > now ? `in ${span(at - now)}` : 'now')

/** A time relative to berth's clock, or in a report the time of day; the whole on hover. */
export function Time({ at, isDue }: { at: string | null | undefined; isDue?: boolean }) {
  const { clock, context } = useDashboard()
  if (!at) return <span class="quiet">never</span>
  if (context.is_report) return <TimeOfDay at={Date.parse(at)} />
  const describe = isDue ? dueIn : relative
  return (
    <time dateTime={at} title={at}>
      {describe(Date.parse(at), clock.now.value)}
    </time>
  )
}
