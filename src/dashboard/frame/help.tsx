import { Dialog } from '../components/dialog.tsx'
import { useDashboard } from '../dashboard.ts'

/** Lists the keys that work on this screen. */
export function Help({ onClose }: { onClose: () => void }) {
  const { shortcuts } = useDashboard()
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {shortcuts.list().map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
