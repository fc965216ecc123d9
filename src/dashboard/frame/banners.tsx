import { useDashboard } from '../dashboard.ts'

/** Says of every state that is not normal, so that nobody wonders: above every screen. */
export function Banners() {
  const { changes } = useDashboard()
  return (
    <div class="banners" aria-live="polite">
      {changes.state.value === 'lost' && (
        <p class="banner">
          The connection to berth is lost: what you see may be old. The page connects again by itself.
        </p>
      )}
    </div>
  )
}
