import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { isWholeId } from '../ids.ts'
import { type NameWords, pick, unknownName } from '../names.ts'
import { goalSummary } from './show.ts'

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
  if (id === undefined || !isWholeId(id))
    return pick(await listTasks(client, server), id, WORDS, 'TASK', taskState)
  if (server !== undefined) return getTask(client, server, id)
  const found = (await listTasks(client, undefined)).find((task) => task.id === id)
  if (found) return found
  throw unknownName(id, WORDS)
}

const taskState = ({ status, goal }: Task): string => `${status}, ${goalSummary(goal)}`

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
  const { tasks } =
    server === undefined
      ? await client.call('tasks.listAll', { signal })
      : await client.call('tasks.list', { params: { serverId: server }, signal })
  return tasks
}
