import { Button } from '../components/button.tsx'
import { useDashboard } from '../dashboard.ts'

/** Says of every state that is not normal, so that nobody wonders: above every screen. */
export function Banners() {
  const { changes, store, context } = useDashboard()
  const faults = context.is_admin ? store.faults.open().list.value.length : 0
  return (
    <div class="banners" aria-live="polite">
      {changes.state.value === 'lost' && (
        <p class="banner">
          The connection to berth is lost: what you see may be old. The page connects again by itself.
        </p>
      )}
      {faults > 0 && (
        <p class="banner">
          {faults === 1 ? 'A fault is set' : `${faults} faults are set`}: requests that match fail on purpose.
          <FaultActions />
        </p>
      )}
    </div>
  )
}

/** What can be done about faults. */
function FaultActions() {
  const { api, store, notices } = useDashboard()
  const clear = async (): Promise<void> => {
    await api.call('control.faults.clear')
    for (const { id } of store.faults.list.peek()) store.faults.remove(id)
    notices.done('All faults were removed.')
  }
  return <Button onClick={clear}>Remove all</Button>
}
