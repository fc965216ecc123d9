import { Dialog } from '../components/dialog.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ShortcutGroup } from '../store/shortcuts.ts'

/** The groups of keys, in order. */
const GROUPS: readonly { group: ShortcutGroup; title: string }[] = [
  { group: 'screen', title: 'On this screen' },
  { group: 'page', title: 'Everywhere' },
  { group: 'go', title: 'Go to' },
]

/** How a key is written that no letter stands for. */
const WRITTEN: Readonly<Record<string, string>> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc' }

/** Lists the keys that work on this screen. */
export function Help({ onClose }: { onClose: () => void }) {
  const { shortcuts } = useDashboard()
  const all = shortcuts.list()
  return (
    <Dialog title="Keys" onClose={onClose}>
      {GROUPS.map(({ group, title }) => {
        const listed = all.filter((one) => (one.group ?? 'screen') === group)
        if (listed.length === 0) return null
        return (
          <section key={group} class={`keys of-${group}`}>
            <h3>{title}</h3>
            <dl>
              {listed.map(({ keys, also, label }) => (
                <div key={keys}>
                  <dt>
                    {[...keys.split(' '), ...(also === undefined ? [] : [also])].map((key) => (
                      <kbd key={key}>{WRITTEN[key] ?? key}</kbd>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        )
      })}
    </Dialog>
  )
}
