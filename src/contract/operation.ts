import { type TSchema, t } from 'elysia'
import type { Access, Admission } from '../http/access.ts'
import type { FormShape } from '../http/multipart.ts'
import type { Tag } from './tags.ts'

/** Every failure's body (specification, "Errors"). */
export const ErrorBody = t.Object(
  {
    error: t.String({ description: 'Machine-readable code.' }),
    message: t.String({ description: 'Human-readable sentence: the cause and the remedy.' }),
  },
  { $id: 'Error', additionalProperties: false },
)

/** What the failures of the API mean, by status. */
export const ERROR_MEANINGS = {
  400: 'The request is malformed; the message names the field and what was expected.',
  401: 'The credential is missing or invalid.',
  402: 'The account is out of budget.',
  403: 'The key does not allow the operation, or the plan refuses it.',
  404: 'No such resource.',
  413: 'The body is over the limit.',
  502: 'The compute backend failed.',
  503: 'berth is stopping or beginning anew.',
} as const

/** Where an operation's route keeps, for documents, what its event stream says. */
export const EVENT_STREAM = 'x-event-stream'

/** Where an operation's route keeps, for documents, the form that it takes in place of JSON. */
export const FORM = 'x-form'

/**
 * Where an operation's route keeps, for documents, the statuses of its failures. They are not among
 * its responses: failures are thrown and answered in one place, and Elysia would compile a check of
 * the same body for each status of each route.
 */
export const FAILURES = 'x-failures'

/** Where an operation's route keeps, for documents and tools, that it takes a key that reaches the whole account. */
export const ACCOUNT_LEVEL = 'x-account-level'

/** A status with which an operation can fail. */
export type ErrorStatus = keyof typeof ERROR_MEANINGS

/** What an operation says of itself beside its request shapes. */
interface OperationFacts<Success> {
  access: Access
  /** The body may come as this form too; its file is the handler's `upload`. */
  form?: FormShape
  tag: Tag
  summary: string
  description?: string
  /** What comes as an event stream where the caller accepts one: the events and their data. */
  events?: string
  /** Status → shape of a success. */
  success: Success
  /** The statuses of the specification's table. */
  errors: readonly ErrorStatus[]
}

/** What an operation's route declares, of which Elysia infers the handler's types. */
type Declared<Success> = {
  access: Admission
  response: Success
  detail: {
    operationId: string
    summary: string
    description?: string
    tags: string[]
    [EVENT_STREAM]?: string
    [FORM]?: FormShape
    [ACCOUNT_LEVEL]?: true
    [FAILURES]: ErrorStatus[]
  }
}

/**
 * One operation of the API: all that its route declares, and that documents, tools and the command
 * line read from it. A route is `.get(path, handler, operation(id, facts, shapes))`, nothing beside it.
 *
 * @param id the operation id, such as `servers.create`
 * @param shapes the request's body and query, where it has them
 */
export function operation<
  const Success extends Record<number, TSchema>,
  const Shapes extends { body?: TSchema; query?: TSchema },
>(id: string, facts: OperationFacts<Success>, shapes: Shapes): Declared<Success> & Shapes
export function operation<const Success extends Record<number, TSchema>>(
  id: string,
  facts: OperationFacts<Success>,
): Declared<Success>
export function operation(
  id: string,
  {
    access,
    form,
    tag,
    summary,
    description,
    events,
    success,
    errors,
  }: OperationFacts<Record<number, TSchema>>,
  shapes: object = {},
): unknown {
  return {
    ...shapes,
    access: form ? { access, form } : access,
    response: success,
    detail: {
      operationId: id,
      summary,
      ...(description ? { description } : {}),
      ...(events ? { [EVENT_STREAM]: events } : {}),
      ...(form ? { [FORM]: form } : {}),
      ...(access === 'account' ? { [ACCOUNT_LEVEL]: true } : {}),
      [FAILURES]: [...errors],
      tags: [tag],
    },
  }
}
