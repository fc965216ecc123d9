import type { Dashboard } from '../../../dashboard.ts'
import type { Terminal } from '../../../store/store.ts'

/** Opens a terminal on a server, which wakes it. */
export async function openTerminal({ api, store }: Dashboard, serverId: string): Promise<Terminal> {
  const { terminal } = await api.call('terminals.create', { params: { serverId }, body: {} })
  store.terminals(serverId).put(terminal)
  return terminal
}
