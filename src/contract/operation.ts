/**
 * How an operation is declared. A route names its id of `operations.ts` and describes itself by `operation(…)`.
 * Validation, errors, the OpenAPI documents (`openapi/`), the reference (`reference/`), tools of MCP and the clients'
 * types all follow from that. `request.ts` validates requests, with messages from src/runtime/validation;
 * `error-response.ts` makes the response to a failure, and `near-paths.ts` finds what a wrong path may have meant. The shapes of bodies are in the `model.ts` of a noun, made with
 * the schemas of `schema.ts`. docs/contributing.md says how to add an operation.
 */

import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { ERROR_STATUS } from '../errors.ts'
import type { RouteAdmission } from '../http/authentication.ts'
import type { FormShape } from '../http/multipart.ts'
import { refuseBadQuery } from '../http/request-checks.ts'
import type { IndexedOperation, OperationId } from './operations.ts'
import { type CheckedTexts, checkedBody, checkedParams, checkedQuery, shapeOf } from './request.ts'
import { checkedResponse } from './response.ts'
import { tagOf } from './tags.ts'

/** Returns the error codes of a status. */
export const codesOf = (status: number): string[] =>
  Object.entries(ERROR_STATUS).flatMap(([code, one]) => (one === status ? [code] : []))

/** Descriptions of the API's failures, by status. */
export const ERROR_MEANINGS = {
  400: 'The request is malformed; the message names the field and what was expected.',
  401: 'The credential is missing or invalid.',
  402: 'The account is out of budget.',
  403: 'The key does not allow the operation, or the plan refuses it.',
  404: 'No such resource.',
  413: 'The body is over the limit.',
  415: 'The body has a content coding, such as gzip; send it uncompressed.',
  416: 'The range lies behind the end of the file; `content-range` has its size.',
  426: 'The operation is a WebSocket; the request is not a handshake.',
  502: 'The compute backend failed.',
  503: 'berth is stopping or beginning anew.',
} as const

/** Key in a route's `detail`: the description of its event stream, for documents. */
export const EVENT_STREAM = 'x-event-stream'

/** Key in a route's `detail`: the shape of an event of its event stream, for documents. */
export const EVENT_SHAPE = 'x-event-shape'

/** Key in a route's `detail`: the media types of bytes that it can stream in place of JSON, for documents. */
export const BYTE_STREAMS = 'x-byte-streams'

/** Key in a route's `detail`, for documents: its event stream goes on for a client that reconnects. */
export const RESUMABLE = 'x-resumable'

/** Key in a route's `detail`: the form that it accepts in addition to JSON, for documents. */
export const FORM = 'x-form'

/** Keys in a route's `detail`, for documents and tools: its body, or its success, is a stream of bytes. */
export const TAKES = 'x-takes'
export const GIVES = 'x-gives'

/**
 * Key in a route's `detail`: the statuses of its failures, for documents. They are not declared as responses:
 * failures are thrown and handled in one place, and Elysia would compile a check for each status of each route.
 */
export const FAILURES = 'x-failures'

/** Key in a route's `detail`, for documents and tools: it needs a key of the whole account. */
export const ACCOUNT_LEVEL = 'x-account-level'

/** Key in a route's `detail`, for documents: its response contains a credential. */
export const SECRET = 'x-secret'

/** A status of failures that operations can have. */
export type ErrorStatus = keyof typeof ERROR_MEANINGS

/**
 * The access that an operation requires: none (`public`), a key that reaches the resource (`resource`), a key of the
 * whole account (`account`), or the instance's admin token (`admin`).
 */
export type OperationAccess = 'public' | 'resource' | 'account' | 'admin'

/** A body that is a stream of bytes. */
export interface ByteBody {
  readonly type: string
  readonly description: string
}

/** Declaration of an operation in addition to its request shapes. */
interface OperationFacts<Needed extends OperationAccess, Success> {
  access: Needed
  /** Form that the body may have instead of JSON. The handler gets the form's file as `upload`. */
  form?: FormShape
  summary: string
  description: string
  /** The body is bytes of this media type, which the handler reads. */
  takes?: ByteBody
  /** The success is a stream of this media type: of bytes, or of items with the shape of the success. */
  gives?: string
  /** Events and data of the event stream, for callers that accept one. */
  events?: string
  /** The shape of one of these events: its name and its data. */
  event?: TSchema
  /** Media types of bytes that callers may accept in place of JSON. */
  byteStreams?: readonly string[]
  /** Whether the entries of the event stream have ids, so a client that reconnects misses none (`Last-Event-ID`). */
  resumable?: true
  /** Whether it keeps any query as it came, for an operation without a credential. */
  anyQuery?: true
  /** Whether the response contains a credential, so caches must not store it. */
  secret?: true
  /** Shapes of successes by status. */
  success: Success
  /** Statuses of failures, except those that documents add to all operations of a kind. */
  errors?: readonly ErrorStatus[]
}

/** Shapes of a request's parts. */
interface Shapes {
  body?: TSchema
  query?: TSchema
  /** Of the parts of the path that not every text can be; by default each is any text, and unknown ones are 404. */
  params?: TSchema
}

/** The property that makes the macro of the API or of the control API admit the caller. */
type Admitting<Needed extends OperationAccess> = Needed extends 'public'
  ? object
  : Needed extends 'admin'
    ? { admin: true | { readonly readsBytes: true } }
    : { access: RouteAdmission }

/** The declaration of a route, from which Elysia infers the handler's types. */
type Declared<Needed extends OperationAccess, Success, Given extends Shapes> = Admitting<Needed> & {
  response: Success
  detail: {
    operationId: string
    summary: string
    description?: string
    tags: string[]
    /** Empty if no credential is needed. */
    security?: []
    [EVENT_STREAM]?: string
    [EVENT_SHAPE]?: TSchema
    [BYTE_STREAMS]?: readonly string[]
    [RESUMABLE]?: true
    [FORM]?: FormShape
    [TAKES]?: ByteBody
    [GIVES]?: string
    [ACCOUNT_LEVEL]?: true
    [FAILURES]: ErrorStatus[]
  }
} & (Given extends { body: infer Body extends TSchema }
    ? { body: ReturnType<typeof checkedBody<Body>> }
    : object) &
  (Given extends { query: infer Query extends TSchema } ? { query: CheckedTexts<Query['static']> } : object) &
  (Given extends { params: infer Params extends TSchema }
    ? { params: CheckedTexts<Params['static']> }
    : object)

/**
 * Declares an operation of the API or of the control API. The declaration is complete: documents, tools and the
 * command line read it from the route, which is `.get(path, handler, operation(id, facts, shapes))`.
 *
 * @param id key in operations.ts; its noun determines the group in documents
 * @param shapes shapes of the request's body, query and parameters of the path, if they are to be checked
 */
export function operation<
  const Needed extends OperationAccess,
  const Success extends Record<number, TSchema>,
  const Given extends Shapes = Record<never, never>,
>(
  id: OperationId,
  facts: OperationFacts<Needed, Success>,
  { body, query, params }: Given = {} as Given,
): Declared<Needed, Success, Given> {
  const { access, form, takes, gives, summary, description, events, event, byteStreams } = facts
  const { resumable, anyQuery = false, secret, success, errors = [] } = facts
  // Elysia infers the types of a route from `Declared`, whose fields this value has if they were given.
  return {
    ...(body ? { body: checkedBody(body) } : {}),
    ...(query ? { query: checkedQuery(query) } : {}),
    ...(params ? { params: checkedParams(params) } : {}),
    ...admitting(access, form, takes !== undefined),
    ...(secret ? { transform: keepOutOfCaches } : {}),
    // Others check it with the credential.
    ...(access === 'public' && !anyQuery ? { beforeHandle: refuseBadQuery } : {}),
    response: checked(success),
    detail: {
      operationId: id,
      summary,
      description,
      ...(events ? { [EVENT_STREAM]: events } : {}),
      ...(event ? { [EVENT_SHAPE]: event } : {}),
      ...(byteStreams ? { [BYTE_STREAMS]: byteStreams } : {}),
      ...(resumable ? { [RESUMABLE]: true } : {}),
      ...(form ? { [FORM]: form } : {}),
      ...(takes ? { [TAKES]: takes } : {}),
      ...(gives ? { [GIVES]: gives } : {}),
      ...(secret ? { [SECRET]: true } : {}),
      ...(access === 'account' ? { [ACCOUNT_LEVEL]: true } : {}),
      ...(access === 'public' ? { security: [] } : {}),
      [FAILURES]: [...errors],
      tags: [tagOf(id)],
    },
  } as unknown as Declared<Needed, Success, Given>
}

/**
 * Keeps a response with a credential out of caches (RFC 9111, section 5.2.2.5). Must destructure its context: Elysia
 * reads its source to find the parts that it uses.
 */
const keepOutOfCaches = ({ set }: { set: { headers: Record<string, string | number | string[]> } }): void => {
  set.headers['cache-control'] = 'no-store'
}

/** Returns the checked responses of shapes by status. */
const checked = (shapes: Record<number, TSchema>): Record<string, TSchema> =>
  Object.fromEntries(Object.entries(shapes).map(([status, shape]) => [status, checkedResponse(shape)]))

function admitting(access: OperationAccess, form: FormShape | undefined, readsBytes: boolean): object {
  if (access === 'public') return {}
  if (access === 'admin') return { admin: readsBytes ? { readsBytes: true } : true }
  return { access: form || readsBytes ? { access, form, readsBytes } : access }
}

/** An operation with the declaration of its route. */
export interface DescribedOperation extends IndexedOperation {
  /** Statuses of its successes, ascending. */
  readonly successes: readonly number[]
  /** Shapes of the request as JSON Schema; undefined if it has no such part. */
  readonly body: object | undefined
  readonly query: object | undefined
  /** Whether it needs a key of the whole account. */
  readonly accountLevel: boolean
  /** Whether its body or its success is a stream of bytes. */
  readonly streamsBytes: boolean
}

/** Reads the operations of an app from its routes. Takes milliseconds, so callers keep the result. */
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
        streamsBytes: hooks.detail?.[TAKES] !== undefined || hooks.detail?.[GIVES] !== undefined,
      },
    ]
  })
}
