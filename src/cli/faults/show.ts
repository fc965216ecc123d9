import type { Fault } from '../../testing/api/faults.ts'
import type { ShownFault } from '../../testing/api/server-faults.ts'
import { count } from '../format.ts'
import type { Column } from '../output.ts'

/** How faults of requests are listed. */
export const FAULT_COLUMNS: Column<Fault>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'REQUESTS', cell: ({ match }) => matchText(match) },
  { heading: 'EFFECT', cell: ({ effect }) => effectText(effect) },
  { heading: 'WHEN', cell: whenText },
  { heading: 'MATCHED', cell: ({ matched }) => String(matched), right: true },
  { heading: 'STRUCK', cell: ({ hits }) => String(hits), right: true },
]

/** How faults inside a server are listed. */
export const SERVER_FAULT_COLUMNS: Column<ShownFault>[] = [
  { heading: 'KIND', cell: ({ kind }) => kind },
  { heading: 'HOW', cell: lastingText },
]

/** Which requests are meant: `exec.run`, `POST /servers/*`, `all`. */
export function matchText({ operation, method, path, account_id }: Fault['match']): string {
  const parts = [operation, method, path, account_id && `of ${account_id}`]
  return parts.filter(Boolean).join(' ') || 'all'
}

/** What happens to them: `503 service_unavailable`, `wait 500 ms`. */
export function effectText(effect: Fault['effect']): string {
  if ('error' in effect) return [effect.error.status, effect.error.code].filter(Boolean).join(' ')
  if ('delay_ms' in effect) return `wait ${effect.delay_ms} ms`
  return 'disconnect' in effect ? 'disconnect' : 'backend fails'
}

/** When it strikes: `2 times after 1, chance 0.3 (seed 7)`. */
function whenText({ times, after, probability, seed }: Fault): string {
  const often = times === null ? 'always' : count(times, 'time')
  const first = after === 0 ? often : `${often} after ${after}`
  return probability === 1 ? first : `${first}, chance ${probability} (seed ${seed})`
}

/** How a fault inside a server lasts: `500 ms each, 2 commands left`. */
export function lastingText({ delay_ms, times_left, for_ms }: ShownFault): string {
  const parts = [
    delay_ms === undefined ? '' : `${delay_ms} ms for each command`,
    times_left === undefined ? '' : `${count(times_left, 'command')} left`,
    for_ms === undefined ? '' : `for ${for_ms} ms`,
  ].filter(Boolean)
  return parts.length === 0 ? 'until it is lifted' : parts.join(', ')
}
