import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { isWholeId, type NameWords, pick, unknownName } from '../names.ts'

/** Number of servers asked at a time. */
const CONCURRENCY = 8

const WORDS: NameWords = {
  one: 'task',
  listedBy: 'berth tasks',
  none: 'Give a goal with "berth tasks run".',
}

/**
 * Finds a task by its id or the beginning of it, on any server if none is given; the only one if no id is given.
 *
 * @throws CommandError if there is none, or more than one
 */
export async function findTask(
  client: Client,
  id: string | undefined,
  server: string | undefined,
): Promise<Task> {
  if (id === undefined || !isWholeId(id)) return pick(await listTasks(client, server), id, WORDS, 'TASK')
  if (server !== undefined) return getTask(client, server, id)
  const { servers } = await client.call('servers.list')
  for (let at = 0; at < servers.length; at += CONCURRENCY) {
    const asked = servers.slice(at, at + CONCURRENCY).map((one) => getTask(client, one.id, id).catch(absent))
    const found = (await Promise.all(asked)).find((task) => task !== null)
    if (found) return found
  }
  throw unknownName(id, WORDS)
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
  const parts = { signal }
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
