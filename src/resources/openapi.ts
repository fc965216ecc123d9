/**
 * The API, one directory a noun. In each, `routes.ts` has the operations (HTTP), `service.ts` the rules, `table.ts`
 * the stored rows and `model.ts` the shapes of requests and responses; a larger rule has a file of its own, such as
 * `webhooks/retry.ts` and `accounts/plan.ts`. Nouns call each other's services, and hear of the end of a server by
 * `servers/lifecycle-listener.ts`. A change that a person sees is notified to `changes/`; an event for webhooks is
 * written to the outbox (`events/`) in the same transaction.
 *
 * A new noun is such a directory, the ids of its operations in src/contract/operations.ts, a migration (src/storage),
 * its service in src/instance/services.ts and its routes in src/instance/route-groups.ts. This file has the parts of
 * the document besides operations.
 */

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
  description: `Provisions servers, runs commands and agents on them, keeps their files, and puts apps behind URLs. The
[guide](/docs/guide) explains how; the [control API](/_berth/docs) steers the instance for tests.

Requests take an API key as a bearer token, and reach what belongs to its account. A failure has the body
\`{error, message}\`. Times are ISO 8601 in UTC, lists are complete with the newest first. All
[conventions](/docs/guide/api) are a page of the guide.`,
}

/** What the API's document says beside its operations. */
export const API_DOCUMENT: DocumentFacts = {
  info: INFO,
  securitySchemes: {
    bearerAuth: {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key (`sk_live_…`), sent as `Authorization: Bearer sk_live_…`.',
    },
  },
  security: [{ bearerAuth: [] }],
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
