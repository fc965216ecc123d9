import { useMemo } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { shortId } from '../../components/copy.tsx'
import { PlaceFilters, Select, Switch } from '../../components/filters.tsx'
import { JournalSince } from '../../components/http.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest, Project } from '../../store/store.ts'
import { errorCodeOf, isFailed, isOwn, type RequestReader } from './facts.tsx'

/** Properties of the filters. */
interface FiltersProps {
  /** Whether the list is of one server only. */
  isOfServer?: boolean
  /** Whether errors are shown by cause, which have fewer filters. */
  isGrouped?: boolean
}

/** The filters of the list, all in the address. */
export function Filters({ isOfServer = false, isGrouped = false }: FiltersProps) {
  const { store, router } = useDashboard()
  const requests = store.requests.list.value
  const operations = useMemo(
    () => [...new Set(requests.map(({ operation }) => operation ?? 'none'))].sort(),
    [requests],
  )
  const code = router.query.value.get('code') ?? ''
  const fault = router.query.value.get('fault') ?? ''
  return (
    <div class="filters">
      <Select
        name="operation"
        label="Operation"
        choices={[
          { value: '', label: 'All operations' },
          ...operations.map((one) => ({ value: one, label: one === 'none' ? 'no operation' : one })),
        ]}
      />
      <Select name="status" label="Status" choices={isGrouped ? STATUSES.filter(isOfFailures) : STATUSES} />
      {!isOfServer && <PlaceFilters hasServers={!isGrouped} />}
      {code !== '' && (
        <Select
          name="code"
          label="Code"
          choices={[
            { value: '', label: 'All codes' },
            { value: code, label: code },
          ]}
        />
      )}
      {fault !== '' && (
        <Select
          name="fault"
          label="Fault"
          choices={[
            { value: '', label: 'With any fault or none' },
            { value: fault, label: `fault ${shortId(fault)}` },
          ]}
        />
      )}
      {!isGrouped && <Switch name="errors" label="Errors only" />}
      <Switch name="own" label="berth's own clients" />
      {!isGrouped && store.requests.hasOlder.value && (
        <Button onClick={() => store.requests.loadOlder()}>Load older ones</Button>
      )}
      <JournalSince />
    </div>
  )
}

const STATUSES = [
  { value: '', label: 'All statuses' },
  { value: '2xx', label: '2xx done' },
  { value: '3xx', label: '3xx elsewhere' },
  { value: '4xx', label: '4xx refused' },
  { value: '5xx', label: '5xx failed' },
]

const isOfFailures = ({ value }: { value: string }): boolean => value === '' || value >= '4'

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

/** The parts of a request that filters look at. */
interface FilteredRequests {
  readonly requests: readonly JournalRequest[]
  readonly projects: readonly Project[]
  readonly facts: RequestReader
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
      (code === '' || errorCodeOf(request) === code) &&
      (fault === '' || request.faults.some(({ fault_id: id }) => id === fault)) &&
      (account === '' || request.account_id === account) &&
      (sought === '' || facts.sought(request).includes(sought)) &&
      (server === '' || facts.serverId(request, projects) === server),
  )
}

/** Reports whether a status is the wanted one, or of the wanted hundred: `4xx`. */
const hasStatus = (status: number, wanted: string): boolean =>
  wanted.endsWith('xx') ? String(status)[0] === wanted[0] : String(status) === wanted
