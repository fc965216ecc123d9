/** An operation of the specification's tables. */
export interface SpecifiedOperation {
  id: string
  method: string
  path: string
  success: number
  errors: readonly number[]
}

const operation = (
  id: string,
  method: string,
  path: string,
  success: number,
  ...errors: number[]
): SpecifiedOperation => ({ id, method, path, success, errors })

/** The specification's endpoint tables: method, path, success, error statuses. */
export const SPECIFIED: readonly SpecifiedOperation[] = [
  operation('servers.list', 'GET', '/servers', 200, 401),
  operation('servers.create', 'POST', '/servers', 201, 400, 401, 403),
  operation('servers.get', 'GET', '/servers/{serverId}', 200, 401, 404),
  operation('servers.update', 'PATCH', '/servers/{serverId}', 200, 400, 401, 404),
  operation('servers.delete', 'DELETE', '/servers/{serverId}', 200, 401, 404),
  operation('servers.act', 'POST', '/servers/{serverId}/actions', 200, 400, 401, 404, 502),
  operation('exec.run', 'POST', '/servers/{serverId}/exec', 200, 400, 401, 404),
  operation('deployments.list', 'GET', '/servers/{serverId}/deployments', 200, 401, 404),
  operation('deployments.create', 'POST', '/servers/{serverId}/deployments', 201, 401, 404),
  operation('files.read', 'GET', '/servers/{serverId}/files', 200, 401, 404),
  operation('files.write', 'PUT', '/servers/{serverId}/files', 201, 400, 401, 404),
  operation('files.delete', 'DELETE', '/servers/{serverId}/files', 200, 400, 401, 404),
  operation('tasks.list', 'GET', '/servers/{serverId}/tasks', 200, 401, 404),
  operation('tasks.create', 'POST', '/servers/{serverId}/tasks', 201, 400, 401, 402, 404),
  operation('tasks.get', 'GET', '/servers/{serverId}/tasks/{taskId}', 200, 401, 404),
  operation('builds.list', 'GET', '/servers/{serverId}/builds', 200, 401, 404),
  operation('builds.create', 'POST', '/servers/{serverId}/builds', 201, 400, 401, 404),
  operation('builds.get', 'GET', '/servers/{serverId}/builds/{buildId}', 200, 401, 404),
  operation('projects.list', 'GET', '/servers/{serverId}/projects', 200, 401, 404),
  operation('projects.create', 'POST', '/servers/{serverId}/projects', 201, 400, 401, 403, 404),
  operation('projects.listAll', 'GET', '/projects', 200, 401),
  operation('projects.get', 'GET', '/projects/{projectId}', 200, 401, 404),
  operation('projects.update', 'PATCH', '/projects/{projectId}', 200, 400, 401, 404),
  operation('projects.delete', 'DELETE', '/projects/{projectId}', 200, 401, 404),
  operation('projects.cleanup', 'POST', '/projects/{projectId}/cleanup', 200, 400, 401, 404),
  operation('templates.list', 'GET', '/templates', 200, 401),
  operation('keys.list', 'GET', '/keys', 200, 401, 403),
  operation('keys.create', 'POST', '/keys', 201, 400, 401, 403),
  operation('keys.update', 'PATCH', '/keys/{keyId}', 200, 400, 401, 403, 404),
  operation('keys.delete', 'DELETE', '/keys/{keyId}', 200, 401, 403, 404),
  operation('webhooks.list', 'GET', '/webhooks', 200, 401, 403),
  operation('webhooks.create', 'POST', '/webhooks', 201, 400, 401, 403),
  operation('webhooks.delete', 'DELETE', '/webhooks/{webhookId}', 200, 401, 403, 404),
]

/** Groups of operations that are not there yet. Adding one removes it from this list. */
export const MISSING_GROUPS: readonly string[] = []

/** Successes that berth adds: exec may detach. */
export const ADDED_SUCCESSES: Readonly<Record<string, readonly number[]>> = { 'exec.run': [202] }

/**
 * Statuses that berth adds to a table: what a header, a body over the limit, the budget or the
 * backend may bring about, and what an added request field may be refused for.
 */
export const ADDED_STATUSES: Readonly<Record<string, readonly number[]>> = {
  'servers.create': [413, 502],
  'servers.update': [413],
  'servers.act': [402, 413],
  'exec.run': [402, 403, 413, 502],
  'deployments.create': [400, 402, 413, 502],
  'files.read': [400, 413],
  'tasks.get': [400],
  'builds.get': [400],
  'projects.get': [400],
  'files.write': [413],
  'tasks.create': [413, 502],
  'builds.create': [402, 413, 502],
  'projects.create': [402, 413, 502],
  'projects.update': [413],
  'keys.create': [413],
  'keys.delete': [400],
  'keys.update': [413],
  'webhooks.create': [413],
}

/** Shapes that the specification closes: "no extra properties". */
export const CLOSED_SHAPES: readonly string[] = [
  'Server',
  'ServerCreate',
  'ServerUpdate',
  'Task',
  'Build',
  'ApiKeyScopeUpdate',
  'WebhookCreate',
]
