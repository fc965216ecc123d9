import type { ChangeNotifier } from '../../runtime/change-notifier.ts'

/** The types of the objects of an account whose changes berth notifies of. */
export const ACCOUNT_CHANGE_TYPES = [
  'server',
  'project',
  'deployment',
  'task',
  'build',
  'terminal',
  'execution',
  'secret',
  'key',
  'webhook',
  'program',
  'browser',
  'account',
] as const
export type AccountChangeType = (typeof ACCOUNT_CHANGE_TYPES)[number]

/**
 * The types of the objects of the instance, which only its operator sees. The faults inside a server have the server's id;
 * `local_webhooks` is whether webhooks may lead to this machine.
 */
export const INSTANCE_CHANGE_TYPES = [
  'request',
  'event',
  'delivery',
  'inbox',
  'local_webhooks',
  'fault',
  'server_fault',
  'clock',
  'scenario',
  'snapshot',
] as const

/** The type of a change of an object of the instance; `reset` if its state as a whole is about to be replaced. */
type InstanceChangeType = (typeof INSTANCE_CHANGE_TYPES)[number] | 'reset'

/** The type of an object whose change berth notifies of. */
export type ChangeType = AccountChangeType | InstanceChangeType

/** Notifies of every change of an object. */
export type Changes = ChangeNotifier<ChangeType>
