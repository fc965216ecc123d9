import type { Client } from './client.ts'
import { askYes } from './confirm.ts'
import { printable } from './output.ts'
import { isInteractive, type ProcessContext } from './process-context.ts'

/**
 * Returns the server that `server` finds. If there is none yet, offers a person to make one.
 *
 * @throws CommandError as `server` does
 */
export async function serverOrNew(
  client: Client,
  context: ProcessContext,
  options: { server?: string | undefined },
  server: () => Promise<string>,
): Promise<string> {
  if (options.server !== undefined || !isInteractive(context)) return server()
  const { servers } = await client.call('servers.list')
  if (servers.length > 0 || !(await askYes('There is no server yet. Provision one?', context)))
    return server()
  const { id } = await client.call('servers.create', { body: {} })
  await context.stderr.write(`Provisioned ${id}.\n`)
  return id
}

/** Returns what a person calls a server: its label, or its id if it has none. */
export async function serverName(client: Client, serverId: string): Promise<string> {
  const { server } = await client.call('servers.get', { params: { serverId } })
  return server.task === '' ? serverId : printable(server.task)
}
