import type { Server } from '../resources/servers/model.ts'
import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import { count } from './format.ts'
import { printable } from './output.ts'

/** Servers that are named where one has to be chosen. */
const NAMED = 5

/**
 * The server that is meant: the given one, else the only one there is.
 *
 * @param orElse a further way to say what is meant, for the message
 * @throws CommandError where there is none, or more than one
 */
export async function chooseServer(client: Client, given: string | undefined, orElse = ''): Promise<string> {
  if (given !== undefined) return given
  const { servers } = await client.request<{ servers: Server[] }>('GET', '/servers')
  const [only, ...others] = servers
  if (only === undefined)
    throw new CommandError('There is no server yet. Provision one with "berth servers create".')
  if (others.length === 0) return only.id
  const named = servers.slice(0, NAMED).map(({ id, task }) => (task ? `${id} (${printable(task)})` : id))
  throw new CommandError(
    `There are ${count(servers.length, 'server')}: ${named.join(', ')}${servers.length > NAMED ? ', …' : ''}. Say which one is meant with --server ID${orElse}.`,
  )
}
