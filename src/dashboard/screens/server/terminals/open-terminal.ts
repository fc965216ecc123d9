import type { Dashboard } from '../../../dashboard.ts'
import type { Terminal } from '../../../store/store.ts'

/**
 * Opens a terminal on a server, which wakes it.
 *
 * @param cwd the directory to begin in, relative to the workspace; empty for that
 */
export async function openTerminal({ api, store }: Dashboard, serverId: string, cwd = ''): Promise<Terminal> {
  const body = cwd === '' ? {} : { cwd }
  const { terminal } = await api.call('terminals.create', { params: { serverId }, body })
  store.terminals(serverId).add(terminal)
  return terminal
}
