import type { JournalRequest, Project } from '../../store/store.ts'
import { codeOf, isFailed, isOwn, type RequestFacts } from './facts.ts'

/** The parameters of the address that filter the list. */
const FILTERS = ['q', 'operation', 'status', 'code', 'errors', 'server', 'account', 'own', 'fault'] as const

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
  const fault = value('fault')
  const [account, showsOwn, onlyErrors] = [value('account'), value('own') === '1', value('errors') === '1']
  return requests.filter(
    (request) =>
      (showsOwn || !isOwn(request)) &&
      (!onlyErrors || isFailed(request)) &&
      (operation === '' || (request.operation ?? 'none') === operation) &&
      (status === '' || hasStatus(request.status, status)) &&
      (code === '' || codeOf(request) === code) &&
      (fault === '' || request.faults.some(({ fault_id: id }) => id === fault)) &&
      (account === '' || request.account_id === account) &&
      (sought === '' || facts.sought(request).includes(sought)) &&
      (server === '' || facts.serverId(request, projects) === server),
  )
}

/** Reports whether a status is the wanted one, or of the wanted hundred: `4xx`. */
const hasStatus = (status: number, wanted: string): boolean =>
  wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted
