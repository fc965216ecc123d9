/*
 * The index of all operations: their ids, methods and paths. It loads no route, so completion, coverage and matching
 * need no app. Routes are declared with the same ids; a test compares the two.
 */

/** The operations of the API, in the order in which documents list them. */
export const API_OPERATIONS = {
  'servers.list': 'GET /servers',
  'servers.create': 'POST /servers',
  'servers.get': 'GET /servers/{serverId}',
  'servers.compute': 'GET /servers/{serverId}/compute',
  'servers.update': 'PATCH /servers/{serverId}',
  'servers.delete': 'DELETE /servers/{serverId}',
  'servers.act': 'POST /servers/{serverId}/actions',
  'usage.get': 'GET /servers/{serverId}/usage',
  'usage.servers': 'GET /usage/servers',
  'usage.account': 'GET /usage',
  'exec.run': 'POST /servers/{serverId}/exec',
  'exec.stream': 'POST /servers/{serverId}/exec/stream',
  'executions.list': 'GET /servers/{serverId}/executions',
  'executions.get': 'GET /servers/{serverId}/executions/{executionId}',
  'executions.output': 'GET /servers/{serverId}/executions/{executionId}/output',
  'executions.input': 'POST /servers/{serverId}/executions/{executionId}/input',
  'executions.delete': 'DELETE /servers/{serverId}/executions/{executionId}',
  'terminals.list': 'GET /servers/{serverId}/terminals',
  'terminals.create': 'POST /servers/{serverId}/terminals',
  'terminals.get': 'GET /servers/{serverId}/terminals/{terminalId}',
  'terminals.attach': 'GET /servers/{serverId}/terminals/{terminalId}/attach',
  'terminals.screen': 'GET /servers/{serverId}/terminals/{terminalId}/screen',
  'terminals.type': 'POST /servers/{serverId}/terminals/{terminalId}/input',
  'terminals.delete': 'DELETE /servers/{serverId}/terminals/{terminalId}',
  'processes.list': 'GET /servers/{serverId}/processes',
  'processes.delete': 'DELETE /servers/{serverId}/processes/{pid}',
  'files.read': 'GET /servers/{serverId}/files',
  'files.write': 'PUT /servers/{serverId}/files',
  'files.delete': 'DELETE /servers/{serverId}/files',
  'files.download': 'GET /servers/{serverId}/files/content',
  'files.upload': 'PUT /servers/{serverId}/files/content',
  'files.manifest': 'POST /servers/{serverId}/files/manifest',
  'deployments.list': 'GET /servers/{serverId}/deployments',
  'deployments.create': 'POST /servers/{serverId}/deployments',
  'deployments.push': 'POST /servers/{serverId}/deployments/push',
  'deployments.delete': 'DELETE /servers/{serverId}/deployments',
  'deployments.logs': 'GET /servers/{serverId}/deployments/logs',
  'tasks.listAll': 'GET /tasks',
  'tasks.list': 'GET /servers/{serverId}/tasks',
  'tasks.create': 'POST /servers/{serverId}/tasks',
  'tasks.get': 'GET /servers/{serverId}/tasks/{taskId}',
  'tasks.answer': 'POST /servers/{serverId}/tasks/{taskId}/input',
  'tasks.cancel': 'POST /servers/{serverId}/tasks/{taskId}/cancel',
  'tasks.events': 'GET /servers/{serverId}/tasks/{taskId}/events',
  'builds.listAll': 'GET /builds',
  'builds.list': 'GET /servers/{serverId}/builds',
  'builds.create': 'POST /servers/{serverId}/builds',
  'builds.get': 'GET /servers/{serverId}/builds/{buildId}',
  'builds.logs': 'GET /servers/{serverId}/builds/{buildId}/logs',
  'projects.list': 'GET /servers/{serverId}/projects',
  'projects.create': 'POST /servers/{serverId}/projects',
  'projects.detect': 'POST /servers/{serverId}/projects/detect',
  'projects.listAll': 'GET /projects',
  'projects.get': 'GET /projects/{projectId}',
  'projects.update': 'PATCH /projects/{projectId}',
  'projects.delete': 'DELETE /projects/{projectId}',
  'projects.cleanup': 'POST /projects/{projectId}/cleanup',
  'projects.init': 'POST /projects/{projectId}/init',
  'projects.push': 'POST /projects/{projectId}/push',
  'projects.restart': 'POST /projects/{projectId}/restart',
  'projects.logs': 'GET /projects/{projectId}/logs',
  'secrets.set': 'PUT /secrets',
  'projectSecrets.list': 'GET /projects/{projectId}/secrets',
  'projectSecrets.set': 'PUT /projects/{projectId}/secrets',
  'keys.list': 'GET /keys',
  'keys.create': 'POST /keys',
  'keys.update': 'PATCH /keys/{keyId}',
  'keys.delete': 'DELETE /keys/{keyId}',
  'account.get': 'GET /account',
  'programs.list': 'GET /programs',
  'programs.delete': 'DELETE /programs/{programId}',
  'browsers.list': 'GET /browsers',
  'browsers.delete': 'DELETE /browsers/{browserId}',
  'templates.list': 'GET /templates',
  'webhooks.list': 'GET /webhooks',
  'webhooks.create': 'POST /webhooks',
  'webhooks.enable': 'POST /webhooks/{webhookId}/enable',
  'webhooks.delete': 'DELETE /webhooks/{webhookId}',
  'changes.stream': 'GET /changes',
} as const

/** The operations of the control API, in the order in which its document lists them. */
export const CONTROL_OPERATIONS = {
  'control.health': 'GET /_berth/health',
  'control.ready': 'GET /_berth/ready',
  'control.instance.reset': 'POST /_berth/reset',
  'control.snapshots.list': 'GET /_berth/snapshots',
  'control.snapshots.create': 'POST /_berth/snapshots',
  'control.snapshots.diff': 'GET /_berth/snapshots/{name}/diff',
  'control.snapshots.restore': 'POST /_berth/snapshots/{name}/restore',
  'control.snapshots.delete': 'DELETE /_berth/snapshots/{name}',
  'control.clock.read': 'GET /_berth/clock',
  'control.clock.move': 'POST /_berth/clock',
  'control.accounts.list': 'GET /_berth/accounts',
  'control.accounts.create': 'POST /_berth/accounts',
  'control.accounts.update': 'PATCH /_berth/accounts/{accountId}',
  'control.accounts.delete': 'DELETE /_berth/accounts/{accountId}',
  'control.signInLinks.create': 'POST /_berth/sign-in-links',
  'control.changes.stream': 'GET /_berth/changes',
  'control.requests.list': 'GET /_berth/requests',
  'control.requests.errors': 'GET /_berth/requests/errors',
  'control.requests.get': 'GET /_berth/requests/{requestId}',
  'control.requests.clear': 'DELETE /_berth/requests',
  'control.events.list': 'GET /_berth/events',
  'control.events.emit': 'POST /_berth/events',
  'control.localWebhooks.get': 'GET /_berth/local-webhooks',
  'control.localWebhooks.update': 'PATCH /_berth/local-webhooks',
  'control.deliveries.list': 'GET /_berth/deliveries',
  'control.deliveries.summary': 'GET /_berth/deliveries/summary',
  'control.deliveries.get': 'GET /_berth/deliveries/{deliveryId}',
  'control.deliveries.retry': 'POST /_berth/deliveries/{deliveryId}/retry',
  'control.scenarios.list': 'GET /_berth/scenarios',
  'control.scenarios.preview': 'POST /_berth/scenarios/preview',
  'control.scenarios.replace': 'PUT /_berth/scenarios',
  'control.scenarios.add': 'POST /_berth/scenarios',
  'control.scenarios.delete': 'DELETE /_berth/scenarios/{scenarioId}',
  'control.scenarios.clear': 'DELETE /_berth/scenarios',
  'control.fixtures.list': 'GET /_berth/fixtures',
  'control.fixtures.apply': 'POST /_berth/fixtures',
  'control.fixtures.schema': 'GET /_berth/fixtures/schema',
  'control.tasks.scenario': 'GET /_berth/tasks/{taskId}/scenario',
  'control.tasks.release': 'POST /_berth/tasks/{taskId}/release',
  'control.inbox.receive': 'POST /_berth/inbox/{name}',
  'control.inbox.read': 'GET /_berth/inbox/{name}',
  'control.inbox.clear': 'DELETE /_berth/inbox/{name}',
  'control.inbox.list': 'GET /_berth/inbox',
  'control.inbox.clearAll': 'DELETE /_berth/inbox',
  'control.instance.wait': 'GET /_berth/wait',
  'control.faults.list': 'GET /_berth/faults',
  'control.faults.add': 'POST /_berth/faults',
  'control.faults.clear': 'DELETE /_berth/faults',
  'control.faults.delete': 'DELETE /_berth/faults/{faultId}',
  'control.servers.export': 'GET /_berth/servers/{serverId}/export',
  'control.servers.import': 'POST /_berth/servers/import',
  'control.servers.move': 'POST /_berth/servers/{serverId}/move',
  'control.servers.recover': 'POST /_berth/servers/{serverId}/recover',
  'control.serverNetwork.get': 'GET /_berth/servers/{serverId}/network',
  'control.serverNetwork.update': 'PATCH /_berth/servers/{serverId}/network',
  'control.serverFaults.list': 'GET /_berth/servers/{serverId}/fault',
  'control.serverFaults.add': 'POST /_berth/servers/{serverId}/fault',
  'control.serverFaults.clear': 'DELETE /_berth/servers/{serverId}/fault',
  'control.serverFaults.lift': 'DELETE /_berth/servers/{serverId}/fault/{kind}',
} as const

/** The id of an operation of the API. */
export type ApiOperationId = keyof typeof API_OPERATIONS

/** The id of an operation of the control API. */
type ControlOperationId = keyof typeof CONTROL_OPERATIONS

/** The id of any operation. */
export type OperationId = ApiOperationId | ControlOperationId

/** The ids of all operations of the API. */
export const API_OPERATION_IDS = Object.keys(API_OPERATIONS) as readonly ApiOperationId[]

/** An operation of the index. */
export interface IndexedOperation {
  readonly id: string
  readonly method: string
  /** With parameters in braces: `/servers/{serverId}/exec`. */
  readonly path: string
}

/**
 * Lists operations.
 *
 * @param operations method and path, separated by a space, by id
 */
export const listOperations = (operations: Readonly<Record<string, string>>): IndexedOperation[] =>
  Object.entries(operations).map(([id, request]) => {
    const [method = '', path = ''] = request.split(' ')
    return { id, method, path }
  })

/** Finds the operation of a request without the app. */
export class OperationIndex<Operation extends IndexedOperation = IndexedOperation> {
  readonly #patterns: readonly { operation: Operation; segments: readonly string[] }[]

  constructor(readonly all: readonly Operation[]) {
    this.#patterns = all.map((operation) => ({ operation, segments: segmentsOf(operation.path) }))
  }

  /**
   * Returns the operation of a request, or undefined. Like the router, prefers a fixed segment over a parameter.
   *
   * @param path without a query
   */
  match(method: string, path: string): Operation | undefined {
    const given = segmentsOf(path)
    const matching = this.#patterns.filter(
      ({ operation, segments }) => operation.method === method && fits(segments, given),
    )
    return matching.sort((a, b) => parameters(a.segments) - parameters(b.segments))[0]?.operation
  }
}

const segmentsOf = (path: string): string[] => path.split('/').slice(1)

const fits = (segments: readonly string[], given: readonly string[]): boolean =>
  segments.length === given.length &&
  segments.every((part, index) => (part.startsWith('{') ? given[index] !== '' : part === given[index]))

const parameters = (segments: readonly string[]): number =>
  segments.filter((part) => part.startsWith('{')).length
