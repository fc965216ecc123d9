import { type CallId, requestOf } from '../../route-client/client.ts'
import { shellQuoted } from '../components/http.tsx'
import { goalTitle } from '../components/text.ts'
import type { Dashboard } from '../dashboard.ts'
import { matchRoute } from '../router.ts'
import type { Loadable } from '../store/collection.ts'

/** What the drawer is about. */
export interface DrawerSubject {
  readonly kind: 'server' | 'project' | 'task' | 'build' | 'execution' | 'request'
  readonly id: string
  /** What it is called; empty until it is loaded. */
  readonly name: string
  /** The server that it lies on. */
  readonly serverId: string | null
  /** The object as the API gives it; undefined until it is loaded, or if there is none. */
  readonly value: unknown
  /** Loads the list that has it. */
  readonly source: Loadable<unknown>
  /** The line for a terminal that shows it. */
  readonly berth: string
  readonly path: string
}

/** Returns the object of an address: a server, project, task, build, execution or request; null for none or several. */
export function subjectAt({ store, router, context }: Dashboard, address: string): DrawerSubject | null {
  const url = new URL(address, location.origin)
  const { serverId, projectId, taskId, buildId, executionId } =
    matchRoute(router.routes, url.pathname)?.params ?? {}
  const requestId = context.is_admin ? url.searchParams.get('request') : null
  if (requestId !== null && requestId !== '') {
    const request = store.requests.get(requestId)
    return {
      kind: 'request',
      id: requestId,
      name: request ? `${request.method} ${request.path}` : '',
      serverId: serverId ?? null,
      value: request,
      source: store.requests,
      berth: 'berth logs --json',
      path: '/_berth/requests',
    }
  }
  if (taskId !== undefined) {
    const task = store.tasks.get(taskId)
    return {
      kind: 'task',
      id: taskId,
      name: task ? goalTitle(task.goal) : '',
      serverId: task?.serverId ?? null,
      value: task,
      source: store.tasks,
      berth: `berth tasks get ${taskId}`,
      path: pathOf('tasks.get', { serverId: task?.serverId ?? '', taskId }),
    }
  }
  if (buildId !== undefined) {
    const build = store.builds.get(buildId)
    return {
      kind: 'build',
      id: buildId,
      name: build ? goalTitle(build.goal) : '',
      serverId: build?.serverId ?? null,
      value: build,
      source: store.builds,
      berth: `berth builds get ${buildId}`,
      path: pathOf('builds.get', { serverId: build?.serverId ?? '', buildId }),
    }
  }
  if (projectId !== undefined) {
    const project = store.projects.get(projectId)
    return {
      kind: 'project',
      id: projectId,
      name: project?.name ?? '',
      serverId: project?.server_id ?? null,
      value: project,
      source: store.projects,
      berth: `berth projects get ${projectId}`,
      path: pathOf('projects.get', { projectId }),
    }
  }
  if (serverId !== undefined && executionId !== undefined) {
    const source = store.executions(serverId)
    const execution = source.get(executionId)
    return {
      kind: 'execution',
      id: executionId,
      name: execution ? goalTitle(execution.command) : '',
      serverId,
      value: execution,
      source,
      berth: `berth executions get ${executionId}`,
      path: pathOf('executions.get', { serverId, executionId }),
    }
  }
  if (serverId !== undefined) {
    const server = store.servers.get(serverId)
    return {
      kind: 'server',
      id: serverId,
      name: server?.task ?? '',
      serverId,
      value: server,
      source: store.servers,
      berth: `berth servers get ${shellQuoted(serverId)}`,
      path: pathOf('servers.get', { serverId }),
    }
  }
  return null
}

const pathOf = (id: CallId, params: Readonly<Record<string, string>>): string =>
  requestOf(id, { params } as never).path
