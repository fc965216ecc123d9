import type { Given } from '../../contract/given.ts'
import type { Lasting, LastingKind } from '../faults/compute/active.ts'

/** What can go wrong inside a server. */
export const SERVER_FAULT_KINDS = ['crash', 'oom', 'disk_full', 'hang', 'slow_exec'] as const

/** A fault inside a server, as it is asked for. */
export type ServerFault = { readonly kind: 'crash' | LastingKind } & Lasting

/** What each kind takes beside its name. */
const FIELDS = {
  crash: [],
  oom: ['times'],
  disk_full: ['for_ms'],
  hang: ['for_ms'],
  slow_exec: ['delay_ms', 'times', 'for_ms'],
} as const

const LONGEST_MS = 3_600_000
const MOST_TIMES = 1_000_000

/** Reads a fault inside a server: `{kind, for_ms?, times?, delay_ms?}`, as each kind takes them. @throws Mistake */
export function readServerFault(given: Given): ServerFault {
  const { kind: named } = given.fields(['kind', 'for_ms', 'times', 'delay_ms'])
  const kinds = SERVER_FAULT_KINDS.join(', ')
  const name = (named ?? given.missing('kind', `one of ${kinds}`)).value
  const kind = SERVER_FAULT_KINDS.find((one) => one === name)
  if (kind === undefined) throw named?.mistake(`one of ${kinds}`)
  // What another kind takes is refused for this one.
  const { for_ms, times, delay_ms } = given.fields<'kind' | 'for_ms' | 'times' | 'delay_ms'>([
    'kind',
    ...FIELDS[kind],
  ])
  if (kind === 'slow_exec' && !delay_ms) given.missing('delay_ms', 'the milliseconds that each command waits')
  return {
    kind,
    ...(for_ms && { forMs: for_ms.integer(1, LONGEST_MS) }),
    ...(times && { times: times.integer(1, MOST_TIMES) }),
    ...(delay_ms && { delayMs: delay_ms.integer(1, LONGEST_MS) }),
  }
}
