import type { ComponentChildren } from 'preact'
import { ApiFailure } from '../api/failure.ts'
import type { Loadable } from '../store/collection.ts'
import { Button } from './button.tsx'

/** Shows a collection once it is loaded; until then that it loads, and if that failed, why. */
export function Loaded<Value>({
  of: collection,
  children,
}: {
  of: Loadable<Value>
  children: (list: readonly Value[]) => ComponentChildren
}) {
  const state = collection.open().state.value
  if (state instanceof Error) return <Failure error={state} retry={() => collection.load()} />
  if (state !== 'ready' && collection.list.value.length === 0) return <Loading />
  return <>{children(collection.list.value)}</>
}

/** Says that something loads, if that takes long enough to be noticed. */
export const Loading = () => (
  <p class="loading quiet" role="status">
    Loading …
  </p>
)

/** Says what failed, why, and offers to try again. */
export const Failure = ({ error, retry }: { error: Error; retry?: () => unknown }) => (
  <div class="notice failure" role="alert">
    <p>{error.message}</p>
    {error instanceof ApiFailure && error.status > 0 && (
      <p class="quiet">
        {error.status} <code>{error.code}</code>
      </p>
    )}
    {retry && <Button onClick={retry}>Try again</Button>}
  </div>
)
