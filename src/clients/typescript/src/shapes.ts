import type { components, paths } from './generated/schema.js'

/** Methods that a path may have. */
type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The JSON of an operation's success, by path, method and status. */
export type Returned<
  Path extends keyof paths,
  Verb extends Method,
  Status extends number = 200,
> = paths[Path][Verb] extends { responses: Record<Status, { content: { 'application/json': infer Body } }> }
  ? Body
  : never

/** The JSON body that an operation takes. */
export type Taken<Path extends keyof paths, Verb extends Method> = paths[Path][Verb] extends {
  requestBody?: infer Request
}
  ? NonNullable<Request> extends { content: { 'application/json': infer Body } }
    ? Body
    : never
  : never

/** The account that a key belongs to, and that key. */
export type Account = Returned<'/account', 'get'>
/** A server as the API describes it. */
export type ServerData = Returned<'/servers/{serverId}', 'get'>['server']
/** A task as the API describes it. */
export type TaskData = Returned<'/servers/{serverId}/tasks/{taskId}', 'get'>['task']
/** A build as the API describes it. */
export type BuildData = Returned<'/servers/{serverId}/builds/{buildId}', 'get'>['build']
/** A project as the API describes it. */
export type ProjectData = Returned<'/projects/{projectId}', 'get'>
/** An execution as the API describes it. */
export type ExecutionData = Returned<'/servers/{serverId}/executions/{executionId}', 'get'>['execution']
/** An entry of the transcript of a task. */
export type TaskEvent = Returned<'/servers/{serverId}/tasks/{taskId}/events', 'get'>['events'][number]
/** A line of the log of a build. */
export type BuildLine = Returned<'/servers/{serverId}/builds/{buildId}/logs', 'get'>['logs'][number]
/** A line of the log of a project. */
export type ProjectLine = Returned<'/projects/{projectId}/logs', 'get'>['logs'][number]
/** An API key, without its plaintext. */
export type KeyData = Returned<'/keys', 'get'>['keys'][number]
/** A webhook, without its secret. */
export type WebhookData = Returned<'/webhooks', 'get'>['webhooks'][number]
/** What a new server may have. */
export type ServerCreate = Taken<'/servers', 'post'>
/** What a new project may have. */
export type ProjectCreate = Taken<'/servers/{serverId}/projects', 'post'>
/**
 * A change of an object that the key reaches: `type` says of which kind, and `value` is the object, or null if it is gone. `ready`
 * comes first, and `gap` says that changes were missed. Later versions of berth may send other types.
 */
export type Change = components['schemas']['Change']
