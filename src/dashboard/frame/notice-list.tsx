import { Button } from '../components/button.tsx'
import { useDashboard } from '../dashboard.ts'

/** Shows what was done or failed, in the corner. */
export function NoticeList() {
  const { notices, router } = useDashboard()
  return (
    <ul class="notices" aria-live="polite">
      {notices.all.value.map(({ id, text, isFailure, action }) => (
        <li key={id} class={`notice${isFailure ? ' failure' : ''}`}>
          <p>{text}</p>
          {action && 'href' in action && action.href !== router.path.value && (
            <a href={action.href}>{action.label}</a>
          )}
          {action && 'run' in action && (
            <Button
              look="quiet"
              onClick={() => {
                notices.dismiss(id)
                action.run()
              }}
            >
              {action.label}
            </Button>
          )}
          <Button look="quiet" icon="close" label="Dismiss" onClick={() => notices.dismiss(id)} />
        </li>
      ))}
    </ul>
  )
}
