import { useMemo } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { PlaceFilters } from '../../components/place-filters.tsx'
import { Select, Switch } from '../../components/select.tsx'
import { useDashboard } from '../../dashboard.ts'

/** The filters of the list, all in the address. @param isOfServer whether it is of one server only */
export function Filters({ isOfServer = false }: { isOfServer?: boolean }) {
  const { store, router } = useDashboard()
  const requests = store.requests.list.value
  const operations = useMemo(
    () => [...new Set(requests.map(({ operation }) => operation ?? 'none'))].sort(),
    [requests],
  )
  const code = router.query.value.get('code') ?? ''
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
      <Select name="status" label="Status" choices={STATUSES} />
      {!isOfServer && <PlaceFilters />}
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
      <Switch name="errors" label="Errors only" />
      <Switch name="own" label="berth's own clients" />
      {store.requests.hasOlder.value && (
        <Button onClick={() => store.requests.loadOlder()}>Load older ones</Button>
      )}
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
