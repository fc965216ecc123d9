import type { OperationObject, Parameter, Paths, Schema } from '../../contract/openapi/model.ts'
import type { SharedSchemas } from '../../contract/openapi/schemas.ts'
import { WEBHOOK_EVENTS_TAG } from '../../contract/tags.ts'
import { EVENT_DATA, exampleOf } from './data.ts'
import { EVENT_NAMES, type EventName } from './names.ts'

/** The headers of every delivery (Standard Webhooks, "Webhook headers"). */
const HEADERS: readonly Parameter[] = [
  header(
    'webhook-id',
    'Id of the event, the same at every attempt: a receiver that has seen it may ignore the request.',
  ),
  header('webhook-timestamp', 'When the attempt was made, in seconds since 1970.'),
  header('webhook-signature', '`v1,` and base64 of HMAC-SHA256 by the secret over `ID.TIMESTAMP.BODY`.'),
]

function header(name: string, description: string): Parameter {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } }
}

/** Describes the requests that berth sends, by event (OpenAPI 3.1, 4.8.1 "webhooks"). */
export const describeWebhooks = (schemas: SharedSchemas): Paths =>
  Object.fromEntries(EVENT_NAMES.map((event) => [event, { post: describe(event, schemas) }]))

function describe(event: EventName, schemas: SharedSchemas): OperationObject {
  return {
    operationId: `on${pascalCase(event)}`,
    summary: `An event ${event}`,
    tags: [WEBHOOK_EVENTS_TAG],
    // No API key: the signature identifies the sender.
    security: [],
    parameters: [...HEADERS],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemas.share(payload(event)) } },
    },
    responses: {
      '2XX': { description: 'Taken. Anything else is a failure, redirects included, and is tried again.' },
    },
  }
}

/** Returns the schema of a delivery's body: the event's name, its data and its time. */
function payload(event: EventName): Schema {
  const { properties, required = [] } = JSON.parse(JSON.stringify(EVENT_DATA[event])) as {
    properties: Record<string, Schema>
    required?: string[]
  }
  return {
    $id: `${pascalCase(event)}Event`,
    type: 'object',
    required: ['event', ...required, 'created_at'],
    properties: {
      event: { const: event, type: 'string' },
      ...properties,
      created_at: { type: 'string', format: 'date-time' },
    },
    examples: [{ event, ...exampleOf(event), created_at: '2030-01-01T00:00:00.000Z' }],
  }
}

/** Converts an event's name: `task.created` → `TaskCreated`. */
const pascalCase = (event: EventName): string =>
  event.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
