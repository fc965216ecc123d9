/**
 * The ids of all operations, in the order in which documents list them. A list of its own, so that whoever reads or
 * completes an id need not load the routes.
 */
export const OPERATION_IDS = [
  'servers.list',
  'servers.create',
  'servers.get',
  'servers.update',
  'servers.delete',
  'servers.act',
  'exec.run',
  'files.read',
  'files.write',
  'files.delete',
  'deployments.list',
  'deployments.create',
  'tasks.list',
  'tasks.create',
  'tasks.get',
  'tasks.answer',
  'tasks.cancel',
  'tasks.events',
  'builds.list',
  'builds.create',
  'builds.get',
  'builds.logs',
  'projects.list',
  'projects.create',
  'projects.listAll',
  'projects.get',
  'projects.update',
  'projects.delete',
  'projects.cleanup',
  'projects.init',
  'projects.logs',
  'secrets.set',
  'projectSecrets.set',
  'keys.list',
  'keys.create',
  'keys.update',
  'keys.delete',
  'templates.list',
  'webhooks.list',
  'webhooks.create',
  'webhooks.delete',
] as const

/** The id of an operation. */
export type OperationId = (typeof OPERATION_IDS)[number]

/** Whether a text is the id of an operation. */
export const isOperationId = (text: string): text is OperationId =>
  (OPERATION_IDS as readonly string[]).includes(text)
