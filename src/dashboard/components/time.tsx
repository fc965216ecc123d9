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

/** A time of day by the second, in UTC as everything that berth writes; the whole on hover. */
export const TimeOfDay = ({ at }: { at: number }) => {
  const iso = new Date(at).toISOString()
  return (
    <time dateTime={iso} title={iso}>
      {iso.slice(11, 19)}
    </time>
  )
}

/** A time relative to berth's clock; the whole on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const { clock } = useDashboard()
  if (!at) return <span class="quiet">never</span>
  return (
    <time dateTime={at} title={at}>
      {relative(Date.parse(at), clock.now.value)}
    </time>
  )
}
