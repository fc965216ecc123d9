import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { openTerminal } from '../../components/begin.ts'
import { Button, Icon } from '../../components/button.tsx'
import { shellQuoted } from '../../components/http.tsx'
import { Empty, Loaded, Loading } from '../../components/page.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server, Terminal } from '../../store/store.ts'
import type { TerminalViewProps } from './terminal-view.tsx'

/** Which terminal is shown. */
interface ShownTerminal {
  /** Its id or name; null for the first. */
  readonly id: string | null
  show(id: string): void
}

/**
 * The terminals of a server, of which one is shown. They run on when the page is left: `berth shell` has the same.
 *
 * @param shown which one is shown; by default the one that the address names
 */
export function TerminalsView({ server, shown: given }: { server: Server; shown?: ShownTerminal }) {
  const dashboard = useDashboard()
  const { router, store, api } = dashboard
  const ofAddress = {
    id: router.query.value.get('terminal'),
    show: (id: string) => router.setQuery('terminal', id),
  }
  const { id: wanted, show } = given ?? ofAddress
  const open = async (): Promise<void> => {
    const terminal = await openTerminal(dashboard, server.id)
    show(terminal.id)
  }
  const close = async (terminal: Terminal): Promise<void> => {
    await api.call('terminals.delete', { params: { serverId: server.id, terminalId: terminal.id } })
    store.terminals(server.id).remove(terminal.id)
  }
  return (
    <Loaded of={store.terminals(server.id)}>
      {(all) => {
        const shown = all.filter((one) => one.exit_code === null || one.id === wanted)
        const current = shown.find(({ id, name }) => id === wanted || name === wanted) ?? shown[0]
        if (!current) return <NoTerminal server={server} open={open} />
        return (
          <div class="terminals">
            <nav class="terminal-tabs" aria-label="Terminals">
              {shown.map((terminal) => (
                <span key={terminal.id} class={`terminal-tab${terminal === current ? ' current' : ''}`}>
                  <button type="button" aria-current={terminal === current} onClick={() => show(terminal.id)}>
                    {terminal.name}
                    {terminal.exit_code !== null && ` (exit ${terminal.exit_code})`}
                  </button>
                  <Button
                    look="quiet"
                    icon="close"
                    label={`Hang up ${terminal.name}`}
                    onClick={() => close(terminal)}
                  />
                </span>
              ))}
              <Button look="quiet" icon="plus" label="Open another terminal" onClick={open} />
            </nav>
            <LazyTerminalView key={current.id} serverId={server.id} terminal={current} />
          </div>
        )
      }}
    </Loaded>
  )
}

/** Offers to open the first terminal. */
const NoTerminal = ({ server, open }: { server: Server; open: () => Promise<void> }) => (
  <Empty title="No terminal is open">
    <p>
      {server.status === 'sleeping'
        ? 'The server sleeps. A terminal wakes it.'
        : 'A terminal runs on when you leave the page, and is the same in every browser and in berth shell.'}
    </p>
    <p>
      <Button look="primary" icon="terminal" onClick={open}>
        Open a terminal
      </Button>
    </p>
    <p class="quiet">
      <Icon name="terminal" /> <code>berth shell {shellQuoted(server.task || server.id)}</code>
    </p>
  </Empty>
)

/** Loads the emulator when the first terminal is shown. */
function LazyTerminalView(props: TerminalViewProps) {
  const [View, setView] = useState<ComponentType<TerminalViewProps> | null>(null)
  useEffect(() => {
    void import('./terminal-view.tsx').then(({ TerminalView }) => setView(() => TerminalView))
  }, [])
  return View ? <View {...props} /> : <Loading />
}
