import type { Client } from './client.ts'
import { askYes } from './confirm.ts'
import { NothingYetError } from './errors.ts'
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
  if (servers.length > 0 || !(await askYes('There is no server yet. Provision one?', context, true)))
    return server()
  const { id } = await client.call('servers.create', { body: {} })
  await context.stderr.write(`Provisioned ${id}.\n`)
  return id
}

/**
 * Returns the list of what a server has, or `none` if there is no server yet: then no server has anything.
 *
 * @throws CommandError as `server` does in other cases
 */
export async function listOrNone<List>(
  server: () => Promise<string>,
  list: (serverId: string) => Promise<List>,
  none: List,
): Promise<List> {
  try {
    return await list(await server())
  } catch (error) {
    if (error instanceof NothingYetError) return none
    throw error
  }
}

/** Returns what a person calls a server: its label, or its id if it has none. */
export async function serverName(client: Client, serverId: string): Promise<string> {
  const { server } = await client.call('servers.get', { params: { serverId } })
  return server.task === '' ? serverId : printable(server.task)
}
