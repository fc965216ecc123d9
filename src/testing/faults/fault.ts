import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { API_OPERATION_IDS } from '../../contract/operations.ts'
import { inAnyCase, integer, oneOf, worded } from '../../contract/schema.ts'
import { type JsonPath, ValidationError } from '../../runtime/validation/validation-error.ts'

/** Most requests that are counted before a fault strikes, or that it strikes. */
const MAX_REQUESTS = 1_000_000_000

/** Longest delay, milliseconds: an hour. */
const MAX_DELAY_MS = 3_600_000

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const closed = <Fields extends TProperties>(fields: Fields, options: object = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })

const filled = (words: string, description?: string) =>
  worded(
    Type.String({ pattern: '\\S', ...(description ? { description } : {}) }),
    `${words} that is not empty`,
  )

/** Which requests a fault matches, except for the account. Absent fields match all. */
const MATCH_FIELDS = {
  operation: Type.Optional(
    worded(
      oneOf([...API_OPERATION_IDS] as [string, ...string[]], {
        description: 'The id of an operation of the API, such as exec.run.',
      }),
      'an "operationId" of GET /openapi.json, such as exec.run',
    ),
  ),
  method: Type.Optional(inAnyCase(METHODS)),
  path: Type.Optional(
    worded(
      Type.String({
        pattern: '^[/*][^?]*$',
        description: 'A path or a glob: `*` or `{id}` is what stands between two slashes, `**` anything.',
      }),
      'a path without a query that begins with "/" or "*", such as "/servers/*/exec"',
    ),
  ),
}

/** The effect on matching requests. */
export const FaultEffect = Type.Union(
  [
    closed(
      {
        error: closed({
          status: integer({ minimum: 400, maximum: 599 }),
          code: Type.Optional(filled('a code', 'By default what the API says with this status.')),
          message: Type.Optional(filled('a sentence')),
        }),
      },
      { description: 'The request is answered so, and nothing is done.' },
    ),
    closed(
      { delay_ms: integer({ minimum: 0, maximum: MAX_DELAY_MS }) },
      { description: 'The request waits first, in physical milliseconds.' },
    ),
    closed({ disconnect: Type.Literal(true) }, { description: 'The connection is cut, without an answer.' }),
    closed(
      { backend: Type.Literal('fail') },
      {
        description: 'The compute driver fails whatever the request, and work that it begins, asks of it.',
      },
    ),
  ],
  { $id: 'FaultEffect', description: 'What happens to the requests.' },
)
export type FaultEffect = Static<typeof FaultEffect>

/** The response that replaces the operation's own. */
export type FaultError = Extract<FaultEffect, { error: unknown }>['error']

/** When a fault strikes. */
const RULE_FIELDS = {
  times: Type.Optional(
    integer({ minimum: 1, maximum: MAX_REQUESTS, description: 'Requests that it strikes; without it all.' }),
  ),
  after: Type.Optional(
    integer({ minimum: 0, maximum: MAX_REQUESTS, description: 'Requests that match and pass first.' }),
  ),
  probability: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'How likely it strikes then.' }),
  ),
  seed: Type.Optional(
    integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Of the chance: the same seed strikes the same requests.',
    }),
  ),
}

/** Which requests a fault of the control API is for. */
export const FaultMatch = worded(
  closed(
    {
      ...MATCH_FIELDS,
      account_id: Type.Optional(filled('the id of an account', 'The account whose key the request carries.')),
    },
    { $id: 'FaultMatch', description: 'Which requests; what is left out does not matter.' },
  ),
  'an object, {} for every request',
)
export type FaultMatch = Static<typeof FaultMatch>

/** A fault, as the control API takes it and as the database keeps it. */
export const FaultText = closed(
  { match: FaultMatch, effect: FaultEffect, ...RULE_FIELDS },
  { $id: 'FaultCreate' },
)
export type FaultText = Static<typeof FaultText>

/** A fault of a fixtures file: the account is named there, and has no id yet. */
export const FixtureFault = closed({
  match: closed(
    {
      ...MATCH_FIELDS,
      account: Type.Optional(filled('the name of an account', 'Name of an account of the files.')),
    },
    { description: 'Which requests are meant; {} for all.' },
  ),
  effect: FaultEffect,
  ...RULE_FIELDS,
})
export type FixtureFault = Static<typeof FixtureFault>

/**
 * Completes a fault whose shape has been checked: its method in upper case.
 *
 * @param path position of the fault in its document
 * @throws ValidationError for a path of the control API, which has no faults
 */
export function normalizeFault(fault: FaultText, path: JsonPath = []): FaultText {
  const { match, effect, ...rule } = fault
  if (match.path !== undefined && /^\/_berth(?:\/|$)/.test(match.path)) {
    throw new ValidationError(
      [...path, 'match', 'path'],
      'the control API itself has no faults; expected a path of the API.',
    )
  }
  const method = match.method?.toUpperCase()
  return { match: { ...match, ...(method === undefined ? {} : { method }) }, effect, ...rule }
}

/** The facts of a request that faults are matched by. */
export interface RequestFacts {
  readonly operation: string | undefined
  readonly method: string
  /** Without a query. */
  readonly path: string
  readonly accountId: string | undefined
  /**
   * Whether it only carries other requests, each of which is matched by itself. Only its own literal path matches it.
   */
  readonly isCarrier: boolean
}
