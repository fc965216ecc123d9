import { useDashboard } from '../dashboard.ts'
import { Select } from './select.tsx'

/** The filters of traffic by server and, if there are several, by account. */
export function PlaceFilters({ hasServers = true }: { hasServers?: boolean }) {
  const { context, store } = useDashboard()
  const servers = store.servers.open().list.value
  const accounts = context.is_admin ? store.accounts.open().list.value : []
  return (
    <>
      {hasServers && (
        <Select
          name="server"
          label="Server"
          choices={[
            { value: '', label: 'All servers' },
            ...servers.map(({ id, task }) => ({ value: id, label: task || id })),
          ]}
        />
      )}
      {accounts.length > 1 && (
        <Select
          name="account"
          label="Account"
          choices={[
            { value: '', label: 'All accounts' },
            ...accounts.map(({ id, label }) => ({ value: id, label: label || id })),
          ]}
        />
      )}
    </>
  )
}
