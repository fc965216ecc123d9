/** What the requests of one test work on. */
export interface World {
  /** A server that runs, with the file `file.txt`. */
  serverId: string
  /** An account-wide key, besides the one that asks. */
  keyId: string
  /** A program that was let in. */
  programId: string
  /** A browser that is signed in. */
  browserId: string
  webhookId: string
  /** An execution of the server that runs, with open standard input. */
  executionId: string
  /** A terminal of the server whose program runs. */
  terminalId: string
  /** A process of the server: the program of the terminal. */
  pid: string
  /** A blank ephemeral project on the server, with a file in its folder. */
  projectId: string
  /** A task on the server that waits for an answer. */
  taskId: string
  /** A build of the server that is over. */
  buildId: string
}

/** How an operation is called. A new operation needs its line here. */
export interface Example {
  query?: Record<string, string>
  /** A body that the operation takes; it may name what a parameter of the same name would. */
  body?: object | ((idOf: (parameter: string) => string) => object)
  /** One whose shape it refuses; every operation with a body has one. */
  invalid?: object
  /** A media type that it accepts, and no other. */
  accept?: string
  /** It works on what the server publishes. */
  needsDeployment?: true
  /** The status of a request that is let in, if that is no success: a WebSocket needs more than a request. */
  status?: number
}

/** A value for each parameter of a path: one that is there, and one that is not. */
export const PARAMETERS: Record<string, { value: (world: World) => string; missing: string }> = {
  serverId: { value: ({ serverId }) => serverId, missing: 'srv_00000000000000000000000000' },
  keyId: { value: ({ keyId }) => keyId, missing: 'key_00000000000000000000000000' },
  programId: { value: ({ programId }) => programId, missing: 'grant_00000000000000000000000000' },
  browserId: { value: ({ browserId }) => browserId, missing: 'ses_00000000000000000000000000' },
  projectId: { value: ({ projectId }) => projectId, missing: 'prj_00000000000000000000000000' },
  buildId: { value: ({ buildId }) => buildId, missing: 'bld_00000000000000000000000000' },
  taskId: { value: ({ taskId }) => taskId, missing: 'task_00000000000000000000000000' },
  executionId: { value: ({ executionId }) => executionId, missing: 'exe_00000000000000000000000000' },
  terminalId: { value: ({ terminalId }) => terminalId, missing: 'term_00000000000000000000000000' },
  pid: { value: ({ pid }) => pid, missing: '4190000' },
  webhookId: { value: ({ webhookId }) => webhookId, missing: 'wh_00000000000000000000000000' },
}

/** By operation id; those that need nothing beside their path are `{}`. */
export const EXAMPLES: Record<string, Example> = {
  'servers.list': {},
  'servers.create': { body: { task: 'x' }, invalid: { tier: 'huge' } },
  'servers.get': {},
  'servers.compute': {},
  'servers.update': { body: { task: 'x' }, invalid: { task: 5 } },
  'servers.delete': {},
  'servers.act': { body: { action: 'start' }, invalid: { action: 'explode' } },
  'usage.get': {},
  'usage.servers': {},
  'usage.account': { query: { days: '7' } },
  'exec.run': { body: { command: 'true' }, invalid: {} },
  'exec.stream': { query: { command: 'true' } },
  'executions.list': {},
  'executions.get': {},
  'executions.output': { query: { limit: '1' } },
  'executions.input': { body: { text: 'x' }, invalid: { text: 5 } },
  'executions.delete': {},
  'terminals.list': {},
  'terminals.create': { body: { command: 'sleep 300' }, invalid: { columns: 0 } },
  'terminals.get': {},
  'terminals.attach': { status: 426 },
  'terminals.screen': { query: { lines: '1' } },
  'terminals.type': { body: { text: 'x', quiet_ms: 0 }, invalid: { keys: 'enter' } },
  'terminals.delete': {},
  'processes.list': {},
  'processes.delete': { query: { signal: 'HUP' } },
  'files.read': { query: { path: 'file.txt' } },
  'files.write': { body: { path: 'new.txt', content: 'x' }, invalid: { path: 'new.txt' } },
  'files.download': { query: { path: 'file.txt' } },
  'files.upload': { query: { path: 'new.bin' } },
  'files.delete': { query: { path: 'file.txt' } },
  'files.manifest': { body: { paths: ['file.txt'] }, invalid: { paths: 5 } },
  'templates.list': {},
  'deployments.list': {},
  'deployments.create': { body: {}, invalid: { directory: 5 } },
  'deployments.push': { body: { files: [] }, invalid: { files: 5 } },
  'deployments.delete': { needsDeployment: true },
  'deployments.logs': {},
  'tasks.listAll': {},
  'tasks.list': {},
  'tasks.create': { body: { goal: 'x' }, invalid: {} },
  'tasks.get': {},
  'tasks.answer': { body: { answer: 'x' }, invalid: { answer: 5 } },
  'tasks.cancel': {},
  'tasks.events': {},
  'builds.listAll': {},
  'builds.list': {},
  'builds.create': { body: { goal: 'x' }, invalid: {} },
  'builds.get': {},
  'builds.logs': {},
  'projects.list': {},
  'projects.create': { body: { name: 'x' }, invalid: { visibility: 'open' } },
  'projects.detect': { body: { template: 'bun-api' }, invalid: { source: 5 } },
  'projects.listAll': {},
  'projects.get': {},
  'projects.update': { body: { name: 'y' }, invalid: { lifecycle: 5 } },
  'projects.delete': {},
  'projects.cleanup': {},
  'projects.init': { body: { proceed: true }, invalid: { proceed: 'yes' } },
  'projects.push': { body: { files: [] }, invalid: { files: 5 } },
  'projects.restart': {},
  'projects.logs': {},
  'secrets.set': {
    body: (idOf) => ({ server_id: idOf('serverId'), secrets: {} }),
    invalid: { secrets: 5 },
  },
  'projectSecrets.list': {},
  'projectSecrets.set': { body: { secrets: { A: 'b' } }, invalid: { secrets: { A: 5 } } },
  'keys.list': {},
  'keys.create': { body: { label: 'x' }, invalid: {} },
  'keys.update': { body: {}, invalid: { label: 'x' } },
  'keys.delete': {},
  'account.get': {},
  'programs.list': {},
  'programs.delete': {},
  'browsers.list': {},
  'browsers.delete': {},
  'webhooks.list': {},
  'webhooks.create': { body: { url: 'https://8.8.8.8/' }, invalid: { url: 5 } },
  'webhooks.enable': {},
  'webhooks.delete': {},
  'changes.stream': { accept: 'application/json', status: 426 },
}
