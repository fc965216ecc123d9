import type { Dashboard } from '../../dashboard.ts'
import type { Task } from '../../store/store.ts'

/** Gives an agent a goal on a server, and goes to the task. */
export async function runTask(
  { api, store, router }: Dashboard,
  serverId: string,
  goal: string,
): Promise<void> {
  const { task_id: taskId } = await api.call('tasks.create', { params: { serverId }, body: { goal } })
  const { task } = await api.call('tasks.get', { params: { serverId, taskId } })
  store.tasks.add(task)
  router.go(`/dashboard/tasks/${taskId}`)
}

/**
 * Gives an agent a goal in place of a task that is over, and goes to the new task. It says so: the screen of a task with
 * the same goal looks like that of the one before.
 */
export async function runTaskAgain(
  dashboard: Dashboard,
  before: Task,
  goal = before.goal,
  serverId = before.serverId,
): Promise<void> {
  await runTask(dashboard, serverId, goal)
  const href = `/dashboard/tasks/${before.id}`
  dashboard.notices.done('Started again: this is the new task.', { label: 'The one before', href })
}
