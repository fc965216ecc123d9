import { useState } from 'preact/hooks'
import { Loading } from '../../components/loaded.tsx'
import { useDashboard } from '../../dashboard.ts'
import { Terminals } from '../../screens/server/terminals/terminals.tsx'

/** The terminals of the server on the screen; of one that is chosen where there is none. */
export function ShellPart({ serverId }: { serverId: string | null }) {
  const { store } = useDashboard()
  const [chosen, choose] = useState('')
  const [terminal, setTerminal] = useState<string | null>(null)
  const servers = store.servers.open()
  const all = servers.list.value
  const server = servers.get(serverId ?? chosen) ?? (serverId === null ? all[0] : undefined)
  if (!server)
    return servers.state.value === 'loading' ? (
      <Loading />
    ) : (
      <p class="drawer-body quiet">
        There is no server to open a shell on. <a href="/dashboard/servers">Servers</a>
      </p>
    )
  return (
    <>
      {serverId === null && all.length > 1 && (
        <label class="drawer-server">
          <span class="quiet">on</span>
          <select
            aria-label="Server of the shell"
            value={server.id}
            onChange={({ currentTarget }) => choose(currentTarget.value)}
          >
            {all.map(({ id, task }) => (
              <option key={id} value={id}>
                {task || id}
              </option>
            ))}
          </select>
        </label>
      )}
      <Terminals key={server.id} server={server} shown={{ id: terminal, show: setTerminal }} />
    </>
  )
}
