import type { ChangeNotifier } from '../../runtime/change-notifier.ts'

/** The types of the objects of an account whose changes berth notifies of. */
export type AccountChangeType =
  | 'server'
  | 'project'
  | 'deployment'
  | 'task'
  | 'build'
  | 'terminal'
  | 'secret'
  | 'key'
  | 'webhook'
  | 'program'
  | 'browser'
  | 'account'

/** The types of the objects of the instance, which only its operator sees. */
type InstanceChangeType =
  | 'request'
  | 'event'
  | 'delivery'
  | 'fault'
  /** The faults inside a server; the id is the server's. */
  | 'server_fault'
  | 'clock'
  | 'snapshot'
  | 'scenario'
  | 'inbox'
  /** Whether webhooks may lead to this machine. */
  | 'local_webhooks'
  /** The state as a whole is about to be replaced. */
  | 'reset'

/** The type of an object whose change berth notifies of. */
export type ChangeType = AccountChangeType | InstanceChangeType

/** Notifies of every change of an object. */
export type Changes = ChangeNotifier<ChangeType>
