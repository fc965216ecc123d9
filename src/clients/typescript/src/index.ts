/**
 * A client of berth: `Berth` is where to begin. Types and the low level, `berth.api`, are generated from the OpenAPI document;
 * the rest is written by hand, and `src/clients/operations.json` of berth's repository names it for all languages.
 */
export type { DirectoryOptions } from './archive.js'
export { Build, Builds } from './builds.js'
export * from './client.js'
export * from './errors.js'
export { Execution, type ExecutionOutput } from './execution.js'
export { Files } from './files.js'
export type { components, operations, paths } from './generated/schema.js'
export type { WaitOptions } from './handle.js'
export { Project, type ProjectOptions, Projects, type PushResult } from './projects.js'
export { Deployments, type ExecOptions, type ExecResult, type ExecuteOptions, Server } from './server.js'
export * from './shapes.js'
export { Task, type TaskRunOptions, Tasks } from './tasks.js'
export { VERSION } from './version.js'
export { verifyWebhook, type WebhookEvent, type WebhookHeaders, Webhooks } from './webhooks.js'
