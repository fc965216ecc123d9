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

/** The name of an event that webhooks can subscribe to. */
export type EventName = (typeof EVENT_NAMES)[number]

/** Every event that is emitted, also those about webhooks themselves, to which none can subscribe. */
export const EMITTED_NAMES = [...EVENT_NAMES, 'webhook.disabled'] as const

/** The name of an emitted event. */
export type EmittedName = (typeof EMITTED_NAMES)[number]

/** Reports whether webhooks can subscribe to an event. */
export const isSubscribable = (event: EmittedName): event is EventName =>
  (EVENT_NAMES as readonly string[]).includes(event)
