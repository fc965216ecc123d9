import { useDashboard } from '../dashboard.ts'
import { selectFirst } from './list-keys.ts'

/** A field that filters a list. What is sought stands in the address as `q`, so that it can be shared and kept. */
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
