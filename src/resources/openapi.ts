import type { DocumentFacts } from '../contract/openapi/facts.ts'
import type { OpenApiDocument } from '../contract/openapi/model.ts'
import { ERROR_MEANINGS } from '../contract/operation.ts'
import { API_TAGS } from '../contract/tags.ts'
import { describeWebhooks } from './events/openapi.ts'

/** Version of the interface (specification, "Versioning"), not of the executable. */
const API_VERSION = '0.1.0'

/** What the document says of the API as a whole. */
const INFO: OpenApiDocument['info'] = {
  title: 'berth',
  version: API_VERSION,
  contact: { name: 'The authors of berth' },
  license: { name: 'MIT', identifier: 'MIT' },
  description: `Provisions servers, runs commands and agents on them, keeps their files, and puts apps behind URLs.

**Credentials.** Every operation but those that say otherwise takes an API key as a bearer token. It reaches
what belongs to its account; the response to anything else is the same as if it did not exist.

The body of a **failure** is \`{error, message}\`: a code for programs and a sentence for people. Checks come in this order:
credential (401), account level (403), shape of the request (400), resource (404). Beside the statuses that an operation lists,
a foreign \`Host\` header gets 403, a method that a path does not know 405, and a fault of berth itself 500. Only the
sign-in of a terminal, which is no operation, answers 429: after too many wrong codes.

**Times** are ISO 8601 in UTC with milliseconds. Lists are complete, newest first. Every response has an \`x-request-id\`,
which the log shows too.

**Tests** steer the instance by an API apart from this one, the [control API](/_berth/docs).

The [guide](/docs/guide) tells how all of it is used.`,
}

/** What the API's document says beside its operations. */
export const API_DOCUMENT: DocumentFacts = {
  info: INFO,
  securitySchemes: {
    apiKey: {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key (`sk_live_…`), sent as `Authorization: Bearer sk_live_…`.',
    },
  },
  security: [{ apiKey: [] }],
  tags: API_TAGS,
  parameters: {
    IdempotencyKey: {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description:
        'Makes the request safe to repeat: for 24 hours the same key with the same body gets the first response again, and with another body 400.',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    },
  },
  failures: ERROR_MEANINGS,
  added({ method, usualCredential, body, streamedBody }) {
    const repeatable = method === 'post' && usualCredential && !streamedBody
    return {
      parameters: repeatable ? ['IdempotencyKey'] : [],
      failures: [
        ...(repeatable ? [400 as const] : []),
        ...(body && !streamedBody ? [413 as const] : []),
        ...(body ? [415 as const] : []),
        503,
      ],
    }
  },
  streams:
    'Where its API key or access token is ended or comes to reach something else, it ends with an event `error` with the body of a 401.',
  webhooks: describeWebhooks,
}
