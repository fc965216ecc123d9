import type { Dashboard } from '../dashboard.ts'
import type { Task, Terminal } from '../store/store.ts'

/** Gives an agent a goal on a server, and opens the task. */
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
 * Gives an agent a goal in place of a task that is over, and opens the new task. It says so: the screen of a task with
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

/** Begins a build on a server, and opens it. */
export async function runBuild(
  { api, store, router }: Dashboard,
  serverId: string,
  goal: string,
): Promise<void> {
  const { build_id: buildId } = await api.call('builds.create', { params: { serverId }, body: { goal } })
  const { build } = await api.call('builds.get', { params: { serverId, buildId } })
  store.builds.add(build)
  router.go(`/dashboard/builds/${buildId}`)
}

/** Starts a command that runs on by itself on a server, which wakes it, and opens its execution. */
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
