import type { Build } from '../../resources/builds/model.ts'
import type { Server } from '../../resources/servers/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { path } from '../path.ts'

/** The builds of a server, or of all that the key reaches; newest first. */
export async function allBuilds(client: Client, server: string | undefined): Promise<Build[]> {
  const ids = server === undefined ? await serverIds(client) : [server]
  const lists = await Promise.all(
    ids.map((id) => client.request<{ builds: Build[] }>('GET', path`/servers/${id}/builds`)),
  )
  const builds = lists.flatMap((list) => list.builds)
  // Those of one server are in order already, also where the clock stands still.
  return ids.length === 1 ? builds : builds.sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
}

/**
 * A build by its id; the server may be left out.
 *
 * @throws CommandError where there is none
 */
export async function findBuild(client: Client, id: string, server: string | undefined): Promise<Build> {
  if (server !== undefined) {
    const { build } = await client.request<{ build: Build }>('GET', path`/servers/${server}/builds/${id}`)
    return build
  }
  const found = (await allBuilds(client, undefined)).find((build) => build.id === id)
  if (found) return found
  throw new CommandError(`No build has the id ${JSON.stringify(id)}. "berth builds" lists those there are.`)
}

async function serverIds(client: Client): Promise<string[]> {
  const { servers } = await client.request<{ servers: Server[] }>('GET', '/servers')
  return servers.map(({ id }) => id)
}
