import { useMemo } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { shortId } from '../../components/copy.tsx'
import { JournalSince } from '../../components/journal-since.tsx'
import { PlaceFilters } from '../../components/place-filters.tsx'
import { Select, Switch } from '../../components/select.tsx'
import { useDashboard } from '../../dashboard.ts'

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
            { value: fault, label: `struck by ${shortId(fault)}` },
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
