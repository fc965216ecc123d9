import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'

/** Number of servers asked at a time. */
const CONCURRENCY = 8

/**
 * Finds a task by id, on any server if none is given.
 *
 * @throws CommandError
 */
export async function findTask(client: Client, id: string, server: string | undefined): Promise<Task> {
  if (server !== undefined) return getTask(client, server, id)
  const { servers } = await client.call('servers.list')
  for (let at = 0; at < servers.length; at += CONCURRENCY) {
    const asked = servers.slice(at, at + CONCURRENCY).map((one) => getTask(client, one.id, id).catch(absent))
    const found = (await Promise.all(asked)).find((task) => task !== null)
    if (found) return found
  }
  throw new CommandError(`There is no task ${JSON.stringify(id)}. "berth tasks" lists those there are.`)
}

/**
 * Returns the current state of a task.
 *
 * @throws CommandError
 */
export const getTask = async (client: Client, serverId: string, id: string): Promise<Task> =>
  (await client.call('tasks.get', { params: { serverId, taskId: id } })).task

/**
 * Lists the tasks of one server, or of all, newest first.
 *
 * @throws CommandError
 */
export async function listTasks(
  client: Client,
  server: string | undefined,
  signal?: AbortSignal,
): Promise<Task[]> {
  const parts = signal ? { signal } : {}
  const ofServer = async (id: string): Promise<Task[]> =>
    (await client.call('tasks.list', { params: { serverId: id }, ...parts })).tasks
  if (server !== undefined) return ofServer(server)
  const { servers } = await client.call('servers.list', { ...parts })
  const lists = await Promise.all(servers.map(async ({ id }) => (await ofServer(id).catch(absent)) ?? []))
  // Ids ascend with time, even within a millisecond.
  return lists.flat().sort((a, b) => (a.id < b.id ? 1 : -1))
}

function absent(error: unknown): null {
  if (error instanceof CommandError && error.code === 'not_found') return null
  throw error
}
