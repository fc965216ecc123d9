import { CloneType, type TSchema } from '@sinclair/typebox'
import { type AnyElysia, t } from 'elysia'
import { ERROR_STATUS } from '../errors.ts'
import type { Admission } from '../http/authentication.ts'
import type { FormShape } from '../http/multipart.ts'
import type { IndexedOperation, OperationId } from './operations.ts'
import { type CheckedQuery, checkedBody, checkedQuery, shapeOf } from './request.ts'
import { oneOf } from './schema.ts'
import { tagOf } from './tags.ts'

/** The names of failures' bodies in documents, by status. */
const ERROR_NAMES = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'BudgetExceeded',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  413: 'PayloadTooLarge',
  429: 'TooManyRequests',
  500: 'InternalError',
  502: 'BackendError',
  503: 'Unavailable',
} as const

/** The body of the failures with a status, which has the codes of that status (specification, "Errors"). */
export const errorBody = (status: keyof typeof ERROR_NAMES) =>
  t.Object(
    {
      error: oneOf(codesOf(status), { description: 'Machine-readable code.' }),
      message: t.String({ description: 'Human-readable sentence: the cause and the remedy.' }),
    },
    { $id: ERROR_NAMES[status], additionalProperties: false },
  )

/** The codes of the registry that come with a status. */
const codesOf = (status: number): [string, ...string[]] =>
  Object.entries(ERROR_STATUS).flatMap(([code, one]) => (one === status ? [code] : [])) as [
    string,
    ...string[],
  ]

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

/** Where an operation's route keeps, for documents, that its response carries a credential. */
export const SECRET = 'x-secret'

/** A status with which an operation can fail. */
export type ErrorStatus = keyof typeof ERROR_MEANINGS

/**
 * What a caller needs for an operation: nothing (`public`), a key that reaches the resource (`resource`), a key that
 * reaches the whole account (`account`), or the instance's admin token (`admin`).
 */
export type OperationAccess = 'public' | 'resource' | 'account' | 'admin'

/** What an operation says of itself beside its request shapes. */
interface OperationFacts<Needed extends OperationAccess, Success> {
  access: Needed
  /** The body may come as this form too; its file is the handler's `upload`. */
  form?: FormShape
  summary: string
  description: string
  /** What comes as an event stream where the caller accepts one: the events and their data. */
  events?: string
  /** The response carries a credential: caches keep nothing of it. */
  secret?: true
  /** Status → shape of a success. */
  success: Success
  /** Statuses of failures beside those that documents add to all operations of a kind. */
  errors?: readonly ErrorStatus[]
}

/** What a request brings. */
interface Shapes {
  body?: TSchema
  query?: TSchema
}

/** The property by which the macro of the API or of the control API is asked to admit the caller. */
type Admitting<Needed extends OperationAccess> = Needed extends 'public'
  ? object
  : Needed extends 'admin'
    ? { admin: true }
    : { access: Admission }

/** What an operation's route declares, of which Elysia infers the handler's types. */
type Declared<Needed extends OperationAccess, Success, Given extends Shapes> = Admitting<Needed> & {
  response: Success
  detail: {
    operationId: string
    summary: string
    description?: string
    tags: string[]
    /** Empty where no credential is needed. */
    security?: []
    [EVENT_STREAM]?: string
    [FORM]?: FormShape
    [ACCOUNT_LEVEL]?: true
    [FAILURES]: ErrorStatus[]
  }
} & (Given extends { body: infer Body extends TSchema }
    ? { body: ReturnType<typeof checkedBody<Body>> }
    : object) &
  (Given extends { query: infer Query extends TSchema } ? { query: CheckedQuery<Query['static']> } : object)

/**
 * Declares one operation of the API or of the control API: all that its route declares, and that documents, tools and
 * the command line read from it. A route is `.get(path, handler, operation(id, facts, shapes))`, nothing beside it.
 *
 * @param id as the index has it (operations.ts); its noun gives the group in documents
 * @param shapes the request's body and query, where it has them
 */
export function operation<
  const Needed extends OperationAccess,
  const Success extends Record<number, TSchema>,
  const Given extends Shapes = Record<never, never>,
>(
  id: OperationId,
  facts: OperationFacts<Needed, Success>,
  { body, query }: Given = {} as Given,
): Declared<Needed, Success, Given> {
  const { access, form, summary, description, events, secret, success, errors = [] } = facts
  return {
    ...(body ? { body: checkedBody(body) } : {}),
    ...(query ? { query: checkedQuery(query) } : {}),
    ...admitting(access, form),
    ...(secret ? { transform: keepOutOfCaches } : {}),
    response: cloned(success),
    detail: {
      operationId: id,
      summary,
      description,
      ...(events ? { [EVENT_STREAM]: events } : {}),
      ...(form ? { [FORM]: form } : {}),
      ...(secret ? { [SECRET]: true } : {}),
      ...(access === 'account' ? { [ACCOUNT_LEVEL]: true } : {}),
      ...(access === 'public' ? { security: [] } : {}),
      [FAILURES]: [...errors],
      tags: [tagOf(id)],
    },
  } as unknown as Declared<Needed, Success, Given>
}

/** Keeps a response with a credential out of caches (RFC 9111, 5.2.2.5). Elysia reads its source for what it uses. */
const keepOutOfCaches = ({ set }: { set: { headers: Record<string, string | number | string[]> } }): void => {
  set.headers['cache-control'] = 'no-store'
}

/**
 * Copies shapes for one app: Elysia writes into those that it compiles, and what an app has been asked before must not
 * change how documents describe it.
 */
const cloned = (shapes: Record<number, TSchema>): Record<string, TSchema> =>
  Object.fromEntries(Object.entries(shapes).map(([status, shape]) => [status, CloneType(shape)]))

function admitting(access: OperationAccess, form: FormShape | undefined): object {
  if (access === 'public') return {}
  if (access === 'admin') return { admin: true }
  return { access: form ? { access, form } : access }
}

/** An operation with what its route declares of it. */
export interface DescribedOperation extends IndexedOperation {
  /** Statuses of its successes, ascending. */
  readonly successes: readonly number[]
  /** Shapes of what is sent, as JSON Schema; undefined where nothing is read. */
  readonly body: object | undefined
  readonly query: object | undefined
  /** It takes a key that reaches the whole account. */
  readonly accountLevel: boolean
}

/** Reads the operations of an app from its routes. Takes milliseconds: callers keep the result. */
export function describedOperations(app: AnyElysia): DescribedOperation[] {
  return app.routes.flatMap(({ method, path, hooks }): DescribedOperation[] => {
    const id: unknown = hooks.detail?.operationId
    if (typeof id !== 'string') return []
    const successes = Object.keys(hooks.response ?? {}).map(Number)
    return [
      {
        id,
        method,
        path: path.replaceAll(/:([^/]+)/g, '{$1}'),
        successes: successes.sort((a, b) => a - b),
        body: shapeOf(hooks.body),
        query: shapeOf(hooks.query),
        accountLevel: hooks.detail?.[ACCOUNT_LEVEL] === true,
      },
    ]
  })
}
