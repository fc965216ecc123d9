/** Every event in the order of the specification ("Events"). */
export const EVENT_NAMES = [
  'task.created',
  'task.completed',
  'task.failed',
  'project.ready',
  'project.init_failed',
  'project.secrets_required',
  'deployment.live',
  'deployment.removed',
  'server.created',
  'server.stopped',
  'server.deleted',
  'quota.threshold',
  'quota.cap_reached',
  'tuning.started',
  'tuning.completed',
] as const

/** The name of an event. */
export type EventName = (typeof EVENT_NAMES)[number]
