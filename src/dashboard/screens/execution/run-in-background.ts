import type { Dashboard } from '../../dashboard.ts'

/** Starts a command that runs on by itself on a server, which wakes it, and goes to its execution. */
export async function runInBackground(
  { api, commands, router, store }: Dashboard,
  serverId: string,
  command: string,
): Promise<void> {
  const body = { command, detach: true }
  const response = await api.call('exec.run', { params: { serverId }, body })
  // Only a command that does not detach has another response.
  if (!('execution' in response)) return
  commands.remember(serverId, command)
  store.executions(serverId).add(response.execution)
  router.go(`/dashboard/servers/${serverId}/executions/${response.execution.id}`)
}
