import type { EmittedName } from './names.ts'

/** The body of a delivery (specification, "Payload shapes"): the event's name, its data and its time. */
export interface EventPayload extends Record<string, unknown> {
  event: EmittedName
  created_at: string
}

/**
 * Builds the payload of an event. Its JSON is always the same bytes.
 *
 * @param createdAt ISO 8601
 */
export const payloadOf = (
  event: EmittedName,
  data: Readonly<Record<string, unknown>>,
  createdAt: string,
): EventPayload => ({ event, ...data, created_at: createdAt })
