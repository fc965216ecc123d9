import type { JournalRequest, Project } from '../../store/store.ts'
import { codeOf, isFailed, isOwn, type RequestFacts } from './facts.ts'

/** The parameters of the address that filter the list. */
const FILTERS = ['q', 'operation', 'status', 'code', 'errors', 'server', 'account', 'own'] as const

/** Returns the filters of an address as a text that differs when they do. */
export const scopeOf = (query: URLSearchParams): string =>
  JSON.stringify(FILTERS.map((name) => query.get(name)))

/** Reports whether an address filters the list. */
export const isFiltered = (query: URLSearchParams): boolean =>
  FILTERS.some((name) => (query.get(name) ?? '') !== '')

/** Returns the address of a screen with some parameters set; an empty one is removed. */
export function hrefWith(
  path: string,
  query: URLSearchParams,
  changes: Readonly<Record<string, string>>,
): string {
  const changed = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') changed.delete(name)
    else changed.set(name, value)
  }
  return `${path}${changed.size === 0 ? '' : `?${changed}`}`
}

/** What is filtered, and what filters look at. */
interface FilteredRequests {
  readonly requests: readonly JournalRequest[]
  readonly projects: readonly Project[]
  readonly facts: RequestFacts
}

/** Returns the requests that the filters of an address let pass. */
export function filterRequests(
  { requests, projects, facts }: FilteredRequests,
  query: URLSearchParams,
): readonly JournalRequest[] {
  const value = (name: (typeof FILTERS)[number]): string => query.get(name) ?? ''
  const sought = value('q').toLowerCase()
  const [operation, status, code, server] = [
    value('operation'),
    value('status'),
    value('code'),
    value('server'),
  ]
  const [account, showsOwn, onlyErrors] = [value('account'), value('own') === '1', value('errors') === '1']
  return requests.filter(
    (request) =>
      (showsOwn || !isOwn(request)) &&
      (!onlyErrors || isFailed(request)) &&
      (operation === '' || (request.operation ?? 'none') === operation) &&
      (status === '' || hasStatus(request.status, status)) &&
      (code === '' || codeOf(request) === code) &&
      (account === '' || request.account_id === account) &&
      (sought === '' || facts.sought(request).includes(sought)) &&
      (server === '' || facts.serverId(request, projects) === server),
  )
}

/** Reports whether a status is the wanted one, or of the wanted hundred: `4xx`. */
const hasStatus = (status: number, wanted: string): boolean =>
  wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted

/** The failed requests of one operation with one code. */
export interface ErrorGroup {
  readonly operation: string
  readonly status: number
  readonly code: string
  readonly count: number
  /** The newest of them. */
  readonly last: JournalRequest
}

/** Groups the failed ones of some requests, newest first, by operation and code; the most frequent first. */
export function groupErrors(requests: readonly JournalRequest[]): ErrorGroup[] {
  const groups = new Map<string, ErrorGroup>()
  for (const request of requests) {
    if (!isFailed(request)) continue
    const [operation, code] = [request.operation ?? 'none', codeOf(request) ?? '']
    const key = `${operation} ${request.status} ${code}`
    const group = groups.get(key) ?? { operation, status: request.status, code, count: 0, last: request }
    groups.set(key, { ...group, count: group.count + 1 })
  }
  return [...groups.values()].sort((a, b) => b.count - a.count)
}
