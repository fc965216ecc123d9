import { useDashboard } from '../dashboard.ts'
import { selectFirst } from './list-keys.ts'

/** A choice of a filter. */
export interface Choice {
  /** The value in the address; empty for the default, which is not in it. */
  readonly value: string
  readonly label: string
}

/** A filter with a few choices. The chosen one is in the address. */
export function Select({
  name,
  label,
  choices,
}: {
  /** The parameter of the address. */
  name: string
  label: string
  choices: readonly Choice[]
}) {
  const { router } = useDashboard()
  const chosen = router.query.value.get(name) ?? ''
  // One of another list, such as a server that was deleted, is kept: it filters.
  const all = choices.some(({ value }) => value === chosen)
    ? choices
    : [...choices, { value: chosen, label: chosen }]
  return (
    <select
      aria-label={label}
      class={chosen === '' ? '' : 'set'}
      value={chosen}
      onChange={({ currentTarget }) => router.setQuery(name, currentTarget.value)}
    >
      {all.map(({ value, label: text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** A filter that is on or off. It is in the address as `1`. */
export function Switch({ name, label }: { name: string; label: string }) {
  const { router } = useDashboard()
  return (
    <label class="switch">
      <input
        type="checkbox"
        checked={router.query.value.get(name) === '1'}
        onChange={({ currentTarget }) => router.setQuery(name, currentTarget.checked ? '1' : '')}
      />
      {label}
    </label>
  )
}

/** A field that filters a list. The text is in the address as `q`, so that it can be shared and kept. */
export function Search({ label }: { label: string }) {
  const { router } = useDashboard()
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={router.query.value.get('q') ?? ''}
      onInput={({ currentTarget }) => router.setQuery('q', currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== 'ArrowDown') return
        event.preventDefault()
        selectFirst()
      }}
    />
  )
}

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
