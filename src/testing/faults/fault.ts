import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { ApiOperation } from '../../contract/model.ts'
import { inAnyCase, integer, notTogether, oneOf, used, withFields, worded } from '../../contract/schema.ts'
import { OWN_CLIENTS, type OwnClient } from '../../http/own-client.ts'
import type { EmittedName } from '../../resources/events/names.ts'
import { SubscribedEvent } from '../../resources/webhooks/model.ts'
import { type JsonPath, ValidationError } from '../../runtime/validation/validation-error.ts'

/** Most requests that are counted before a fault applies, or that it applies to. @bound client */
const MAX_REQUESTS = 1_000_000_000

/** Longest delay, milliseconds: an hour. */
const MAX_DELAY_MS = 3_600_000

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Matches paths of the control API, which has no faults. */
const OF_CONTROL_API = '^/_berth(?:/|$)'

const closed = <Fields extends TProperties>(fields: Fields, options: object = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })

const filled = (words: string, description?: string) =>
  worded(
    Type.String({ pattern: '\\S', ...(description ? { description } : {}) }),
    `${words} that is not empty`,
  )

/** Most characters of a body that a fault responds with, of a header's value, and most headers. @bound client */
const MAX_BODY = 64 * 1024
const MAX_HEADER = 4 * 1024
const MAX_HEADERS = 50

/** Headers that frame a response (RFC 9112, 6). A fault cannot set them: `truncate` breaks a response off. */
const FRAMING_HEADERS = [
  'connection',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Statuses whose responses have no body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const BODILESS_STATUSES = [204, 205, 304]

/** Returns the pattern of a text in any case of its letters. */
const inEitherCase = (text: string): string =>
  text.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)

/** Headers of a response. Names are tokens, values have no line breaks (RFC 9110, 5.1 and 5.5). */
const ResponseHeaders = worded(
  Type.Record(
    Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" }),
    worded(
      Type.String({ pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$', maxLength: MAX_HEADER }),
      `a string of at most ${MAX_HEADER} characters without line breaks`,
    ),
    {
      maxProperties: MAX_HEADERS,
      additionalProperties: false,
      propertyNames: { not: { pattern: `^(?:${FRAMING_HEADERS.map(inEitherCase).join('|')})$` } },
      description: 'Added to the response, or in place of its own.',
    },
  ),
  'an object of header names and strings',
)

/** One of berth's own clients. */
export const OwnClientName = oneOf([...OWN_CLIENTS], { $id: 'OwnClient' })

/** Which requests a fault matches, except for the account. Absent fields match all. */
const MATCH_FIELDS = {
  operation: Type.Optional(worded(ApiOperation, 'an "operationId" of GET /openapi.json, such as exec.run')),
  method: Type.Optional(inAnyCase(METHODS, { $id: 'HttpMethod' })),
  path: Type.Optional(
    worded(
      Type.String({
        pattern: '^[/*][^?]*$',
        // For documents, as all `not` here; `normalizeFault` checks it.
        not: { pattern: OF_CONTROL_API },
        description: 'A path or a glob: `*` or `{id}` is what stands between two slashes, `**` anything.',
      }),
      'a path without a query that begins with "/" or "*", such as "/servers/*/exec"',
    ),
  ),
  deliveries: Type.Optional(
    closed(
      {
        webhook_id: Type.Optional(filled('the id of a webhook', 'Those to one webhook.')),
        event: Type.Optional(used(SubscribedEvent, 'Those of one kind of event.')),
      },
      {
        $id: 'DeliveryMatch',
        description:
          'Attempts to deliver events to webhooks, in place of requests; `{}` for all. Of the other fields only the account goes with it.',
      },
    ),
  ),
  client: Type.Optional(
    used(
      OwnClientName,
      "Requests of one of berth's own clients alone. Those of the dashboard meet only faults that name it.",
    ),
  ),
}

/** The effect on matching requests. */
export const FaultEffect = Type.Union(
  [
    closed(
      {
        error: closed(
          {
            status: integer({ minimum: 400, maximum: 599 }),
            code: Type.Optional(filled('a code', 'By default what the API says with this status.')),
            message: Type.Optional(filled('a sentence')),
            retry_after: Type.Optional(
              integer({
                minimum: 0,
                maximum: MAX_REQUESTS,
                description: 'Seconds in the header Retry-After; by default 1 with 429 and 503, else none.',
              }),
            ),
            headers: Type.Optional(ResponseHeaders),
          },
          { $id: 'FaultError' },
        ),
      },
      { $id: 'ErrorEffect', description: 'Responds so, and does nothing.' },
    ),
    closed(
      { delay_ms: integer({ minimum: 0, maximum: MAX_DELAY_MS }) },
      { $id: 'DelayEffect', description: 'The request waits first, in physical milliseconds.' },
    ),
    closed(
      {
        respond: closed(
          {
            status: integer({ minimum: 200, maximum: 599 }),
            content_type: Type.Optional(
              worded(
                Type.String({ pattern: '^[\\x21-\\x7e][\\x20-\\x7e]*$', maxLength: 200 }),
                'a media type, such as text/html',
              ),
            ),
            headers: Type.Optional(ResponseHeaders),
            body: Type.Optional(Type.String({ maxLength: MAX_BODY })),
          },
          {
            $id: 'FaultReply',
            not: {
              properties: { status: { enum: BODILESS_STATUSES }, body: { type: 'string', minLength: 1 } },
              required: ['status', 'body'],
            },
          },
        ),
      },
      {
        $id: 'RespondEffect',
        description: 'The response is exactly this, whatever its body is, and nothing is done.',
      },
    ),
    closed(
      { disconnect: Type.Literal(true) },
      { $id: 'DisconnectEffect', description: 'Cuts the connection, without a response.' },
    ),
    closed(
      { lose_response: Type.Literal(true) },
      {
        $id: 'LoseResponseEffect',
        description: 'Everything is done as always, then the connection is cut in place of the response.',
      },
    ),
    closed(
      { truncate: closed({ bytes: integer({ minimum: 1, maximum: MAX_REQUESTS }) }, { $id: 'Truncation' }) },
      {
        $id: 'TruncateEffect',
        description: 'The connection is cut after so many bytes of the body of the response.',
      },
    ),
    closed(
      { backend: Type.Literal('fail') },
      {
        $id: 'BackendEffect',
        description: 'The compute driver fails whatever the request, and work that it begins, asks of it.',
      },
    ),
  ],
  { $id: 'FaultEffect', description: 'What happens to the requests.' },
)
export type FaultEffect = Static<typeof FaultEffect>

/** The response that replaces the operation's own. */
export type FaultError = Extract<FaultEffect, { error: unknown }>['error']

/** A response of any kind, as a proxy in front of the API may give it. */
export type FaultResponse = Extract<FaultEffect, { respond: unknown }>['respond']

/** When a fault applies. */
const RULE_FIELDS = {
  times: Type.Optional(
    integer({
      minimum: 1,
      maximum: MAX_REQUESTS,
      description: 'Requests that it applies to; without it all.',
    }),
  ),
  after: Type.Optional(
    integer({ minimum: 0, maximum: MAX_REQUESTS, description: 'Requests that match and pass first.' }),
  ),
  probability: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'How likely it applies then.' }),
  ),
  seed: Type.Optional(
    integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Of the chance: the same seed gives the same requests.',
    }),
  ),
}

/** Fields of requests to the API, which deliveries are none of. */
const OF_REQUESTS = ['operation', 'method', 'path', 'client'] as const

const OF_EITHER = notTogether(...OF_REQUESTS.map((field) => ['deliveries', field]))

/** Effects that deliveries do not have. */
const EFFECTS_OF_REQUESTS = ['truncate', 'backend']

const EFFECT_OF_EITHER = {
  not: {
    properties: {
      match: withFields(['deliveries']),
      effect: { anyOf: EFFECTS_OF_REQUESTS.map((effect) => withFields([effect])) },
    },
    required: ['match', 'effect'],
  },
}

/** Which requests a fault of the control API is for. */
export const FaultMatch = worded(
  closed(
    {
      ...MATCH_FIELDS,
      account_id: Type.Optional(filled('the id of an account', 'The account whose key the request carries.')),
    },
    { $id: 'FaultMatch', ...OF_EITHER, description: 'Which requests; what is left out does not matter.' },
  ),
  'an object, {} for every request',
)
export type FaultMatch = Static<typeof FaultMatch>

/** A fault, as the control API takes it and as the database keeps it. */
export const FaultText = closed(
  { match: FaultMatch, effect: FaultEffect, ...RULE_FIELDS },
  { $id: 'FaultCreate', ...EFFECT_OF_EITHER },
)
export type FaultText = Static<typeof FaultText>

/** A fault of a fixtures file: the account is named there, and has no id yet. */
export const FixtureFault = closed(
  {
    match: closed(
      {
        ...MATCH_FIELDS,
        account: Type.Optional(filled('the name of an account', 'Name of an account of the files.')),
      },
      { $id: 'FixtureFaultMatch', ...OF_EITHER, description: 'Which requests are meant; {} for all.' },
    ),
    effect: FaultEffect,
    ...RULE_FIELDS,
  },
  { $id: 'FixtureFault', ...EFFECT_OF_EITHER },
)
export type FixtureFault = Static<typeof FixtureFault>

/**
 * Completes a fault whose shape has been checked: its method in upper case.
 *
 * @param path position of the fault in its document
 * @throws ValidationError for a path of the control API, which has no faults, and for a response that HTTP cannot carry
 */
export function normalizeFault(fault: FaultText, path: JsonPath = []): FaultText {
  const { match, effect, ...rule } = fault
  if (match.path !== undefined && new RegExp(OF_CONTROL_API).test(match.path)) {
    throw new ValidationError(
      [...path, 'match', 'path'],
      'the control API itself has no faults; expected a path of the API.',
    )
  }
  if (match.deliveries !== undefined) checkDeliveries(fault, path)
  checkResponse(effect, [...path, 'effect'])
  const method = match.method?.toUpperCase()
  return { match: { ...match, ...(method === undefined ? {} : { method }) }, effect, ...rule }
}

/** Checks a fault of deliveries, which are no requests to the API. @throws ValidationError */
function checkDeliveries({ match, effect }: FaultText, path: JsonPath): void {
  for (const field of OF_REQUESTS)
    if (match[field] !== undefined)
      throw new ValidationError(
        [...path, 'match', field],
        'is of requests to the API; "deliveries" are none.',
      )
  const [kind = ''] = Object.keys(effect)
  if (EFFECTS_OF_REQUESTS.includes(kind))
    throw new ValidationError(
      [...path, 'effect', kind],
      'is for requests to the API; deliveries take "error", "respond", "delay_ms", "disconnect" and "lose_response".',
    )
}

/** @throws ValidationError */
function checkResponse(effect: FaultEffect, path: JsonPath): void {
  const [name, { status, headers = {} }] =
    'respond' in effect
      ? (['respond', effect.respond] as const)
      : 'error' in effect
        ? (['error', effect.error] as const)
        : (['', { status: 0 }] as const)
  const framing = Object.keys(headers).find((header) => FRAMING_HEADERS.includes(header.toLowerCase()))
  if (framing !== undefined)
    throw new ValidationError(
      [...path, name, 'headers', framing],
      'berth frames the response itself; expected another header. "truncate" breaks a response off.',
    )
  if ('respond' in effect && BODILESS_STATUSES.includes(status) && (effect.respond.body ?? '') !== '')
    throw new ValidationError([...path, name, 'body'], `a response with ${status} has none; leave it out.`)
}

/** The facts of a request that faults are matched by. */
export interface RequestFacts {
  readonly operation: string | undefined
  readonly method: string
  /** Without a query. */
  readonly path: string
  readonly accountId: string | undefined
  /** Which of berth's own clients sent it; null for any other. */
  readonly client: OwnClient | null
  /** Whether only a fault with its very path matches it, as one that carries requests which are matched by themselves. */
  readonly needsPath: boolean
  /** The delivery that is attempted, if it is not a request to the API. */
  readonly delivery?: { readonly webhookId: string; readonly event: EmittedName }
}
