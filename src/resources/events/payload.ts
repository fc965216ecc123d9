import type { EventName } from './names.ts'

/** An event as a receiver gets it (specification, "Payload shapes"): name, ids, time. */
export interface EventPayload extends Record<string, unknown> {
  event: EventName
  created_at: string
}

/** What a receiver gets of an event; the same bytes as JSON, whoever sends it. @param createdAt ISO 8601 */
export const payloadOf = (
  event: EventName,
  data: Readonly<Record<string, unknown>>,
  createdAt: string,
): EventPayload => ({ event, ...data, created_at: createdAt })
