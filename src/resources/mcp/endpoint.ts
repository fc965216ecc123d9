import { createMcpHandler, isJsonContentType, type McpHttpHandler } from '@modelcontextprotocol/server'
import { BerthError, badRequest } from '../../errors.ts'
import { isAccepted } from '../../http/accept.ts'
import type { Callers } from '../../http/authentication.ts'
import { BODY_LIMIT, readBytes } from '../../http/body.ts'
import type { Caller } from '../../http/caller.ts'
import { decodeText, LossyJson, parseExactJson } from '../../http/json.ts'
import { ACCEPTED_CODING, checkRequest } from '../../http/request-checks.ts'
import { EVENT_STREAM_TYPE } from '../../http/sse.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import type { Logger } from '../../runtime/logger.ts'
import { within } from '../../runtime/wait.ts'
import type { Leaves } from '../exec/leave.ts'
import { PATIENCE_MS as CALL_PATIENCE_MS } from './call.ts'
import { CallersApi, type Handle } from './callers-api.ts'
import { eventsOf, isEventStream } from './events.ts'
import { paramsFault } from './params.ts'
import { Publications } from './publications.ts'
import { serverFor } from './server.ts'
import { McpSessions } from './sessions.ts'
import type { OperationTool } from './tool.ts'
import { viewOf } from './tool-list.ts'

const SESSION = 'mcp-session-id'
const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
const INVALID_PARAMS = -32602
const SESSION_NOT_FOUND = -32001

/** Dependencies of the endpoint. */
interface McpEndpointOptions {
  version: string
  tools: readonly OperationTool[]
  handle: Handle
  callers: Callers
  logger: Logger
  leaves: Leaves
  /** Most characters of a tool's result. */
  outputLimit: number
  /** Returns a text without the credentials that commands of servers have. */
  hide: (text: string) => string
}

/** Serves MCP over streamable HTTP, in protocol version 2026-07-28 and those of 2025. */
export class McpEndpoint {
  readonly #callers: Callers
  readonly #sessions = new McpSessions()
  readonly #publications = new Publications(CALL_PATIENCE_MS)
  /** The messages of requests as they came: the SDK's own copies lack fields such as `__proto__`. */
  readonly #messages = new WeakMap<Request, readonly unknown[]>()
  readonly #plain: McpHttpHandler
  readonly #streaming: McpHttpHandler

  constructor({ version, tools, handle, callers, logger, leaves, outputLimit, hide }: McpEndpointOptions) {
    this.#callers = callers
    const sessions = this.#sessions
    const make = (responseMode: 'auto' | 'sse'): McpHttpHandler =>
      createMcpHandler(
        ({ era, requestInfo: request }) => {
          if (request === undefined) throw new Error('MCP is served only over HTTP.')
          const session = era === 'legacy' ? request.headers.get(SESSION) : null
          // A token that expires during its call serves it to the end. A revoked token does not.
          const caller = this.#callerOf(request)
          const api = new CallersApi(
            handle,
            request,
            (part) => callers.vouch(part, request),
            caller.accountId,
          )
          const view = viewOf(request.url)
          return serverFor({
            version,
            tools,
            view,
            caller,
            api,
            publications: this.#publications,
            leaves,
            form: { limit: outputLimit, hasSchemas: view.hasSchemas, hide },
            argumentsOf: (id) => argumentsIn(this.#messages.get(request) ?? [], id),
            session,
            sessions,
            logger,
          })
        },
        {
          responseMode,
          maxRequestBodySize: BODY_LIMIT,
          onerror: (error) => logger.debug('mcp', { error: error.message }),
        },
      )
    this.#plain = make('auto')
    // A call may take long. Its response begins early and sends heartbeats, so clients and proxies keep waiting.
    this.#streaming = make('sse')
  }

  /** @throws BerthError 401, 413, 503 */
  async #read(request: Request): Promise<Uint8Array> {
    using arriving = this.#callers.bodies.begin(this.#callerOf(request).credentialId, request)
    return await readBytes(request, BODY_LIMIT, arriving)
  }

  /** Returns the caller of an admitted request. */
  #callerOf(request: Request): Caller {
    return this.#callers.admit(request, 'resource')
  }

  /**
   * Handles a request of an admitted caller.
   *
   * @throws BerthError 400, 401, 413, 503
   */
  async response(request: Request): Promise<Response> {
    const refusal = refusalOf(request)
    if (refusal !== null) return refusal
    const session = request.headers.get(SESSION)
    const mcpSession =
      session === null ? null : { credentialId: this.#callerOf(request).credentialId, session }
    if (mcpSession && this.#sessions.isEnded(mcpSession)) {
      return errorResponse(404, SESSION_NOT_FOUND, 'The session was ended. Begin a new one with initialize.')
    }
    if (request.method === 'DELETE') {
      if (!mcpSession) throw badRequest('Say which session to end, by the header Mcp-Session-Id.')
      this.#sessions.end(mcpSession)
      return new Response(null, { status: 200 })
    }
    // The SDK refuses any other type without reading the body.
    if (!isJsonContentType(request.headers.get('content-type'))) {
      return this.#plain.fetch(request)
    }
    const bytes = await this.#read(request)
    // Checked again: the credential may have been revoked while the body was read.
    this.#callerOf(request)
    let message: unknown
    try {
      message = parseExactJson(decodeText(bytes, 'The body'), 'The body')
    } catch (error) {
      if (error instanceof LossyJson) return errorResponse(400, INVALID_REQUEST, error.message)
      if (error instanceof BerthError) return errorResponse(400, PARSE_ERROR, error.message)
      throw error
    }
    const messages: readonly unknown[] = Array.isArray(message) ? message : [message]
    if (mcpSession) {
      for (const id of messages.flatMap(cancelledRequest)) this.#sessions.cancel(mcpSession, id)
    }
    const faults = messages.flatMap((one) => faultIn(one) ?? [])
    if (!Array.isArray(message) && faults[0]) return Response.json(faults[0])
    // In a batch the fault of one message leaves the others alone.
    const right = faults.length === 0 ? messages : messages.filter((one) => faultIn(one) === null)
    if (right.length === 0 && faults.length > 0) return Response.json(faults)
    const { json, stream } = acceptedTypes(request)
    const part = json || stream ? withBothTypes(request) : request
    this.#callers.vouch(part, request)
    this.#messages.set(part, right)
    const mayLast = right.some((one) => methodOf(one) === 'tools/call')
    const handler = mayLast || !json ? this.#streaming : this.#plain
    const parsedBody = Array.isArray(message) ? right : message
    const whole = withFaults(await handler.fetch(part, { parsedBody }), faults)
    const response =
      json && stream
        ? await shortenStream(whole)
        : json
          ? await asJson(whole, request, Array.isArray(message))
          : whole
    const begins = messages.some((one) => methodOf(one) === 'initialize')
    if (begins && response.ok) response.headers.set(SESSION, this.#sessions.newName())
    return response
  }
}

/** Returns the response to a request whose query or coding is refused; null for any other. */
function refusalOf(request: Request): Response | null {
  try {
    checkRequest(request)
    viewOf(request.url)
    return null
  } catch (error) {
    if (!(error instanceof BerthError)) throw error
    const response = errorResponse(error.status, INVALID_REQUEST, error.message)
    if (error.status === 415)
      for (const [name, value] of Object.entries(ACCEPTED_CODING)) response.headers.set(name, value)
    return response
  }
}

const methodOf = (message: unknown): unknown => fieldsOf(message).method

/** Returns the id of the request that a message cancels; empty for any other message. */
function cancelledRequest(message: unknown): unknown[] {
  if (methodOf(message) !== 'notifications/cancelled') return []
  return [fieldsOf(fieldsOf(message).params).requestId]
}

const errorResponse = (status: number, code: number, message: string, id: unknown = null): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status })

/** Returns the error in response to a request whose parameters have a wrong shape; null for any other message. */
function faultIn(message: unknown): object | null {
  const fault = paramsFault(message)
  if (fault === null) return null
  return { jsonrpc: '2.0', id: fieldsOf(message).id, error: { code: INVALID_PARAMS, message: fault } }
}

/** Adds errors to the response to a batch, which the SDK gives as an event stream. */
function withFaults(response: Response, faults: readonly object[]): Response {
  if (faults.length === 0) return response
  // Those that are no requests have no response.
  if (!isEventStream(response) || response.body === null) return Response.json(faults)
  const events = faults.map((fault) => `event: message\ndata: ${JSON.stringify(fault)}\n\n`).join('')
  const reader = response.body.getReader() as Reader
  const begun = Promise.resolve({ done: false as const, value: new TextEncoder().encode(events) })
  return new Response(resumeStream(reader, [begun]), { headers: response.headers })
}

/** Returns the arguments of the call with this id as they came. */
function argumentsIn(messages: readonly unknown[], id: unknown): Record<string, unknown> {
  const call = messages.find((one) => fieldsOf(one).id === id && methodOf(one) === 'tools/call')
  return fieldsOf(fieldsOf(fieldsOf(call).params).arguments)
}

/**
 * Milliseconds after which a response starts even if it has no data yet, so its client sees that the call is running.
 */
const PATIENCE_MS = 1_000

/** Matches a stream with a single message, in the form that the SDK writes. */
const ONLY_MESSAGE = /^event: message\ndata: (.*)\n\n$/

/**
 * A comment of an event stream, which clients ignore. Bun sends a response's head only with the first byte of its
 * body.
 */
const UNDER_WAY = new TextEncoder().encode(': under way\n\n')

const LATE = Symbol('late')

/**
 * Turns an event stream that ends at once after a single message into a JSON response. Most calls take milliseconds,
 * and a stream adds a fifth to that. Other streams pass unchanged. A client must accept both (MCP, "Streamable
 * HTTP").
 */
async function shortenStream(response: Response): Promise<Response> {
  if (!isEventStream(response) || response.body === null) return response
  const { headers } = response
  const reader = response.body.getReader() as Reader
  const first = reader.read()
  const begun = await within(PATIENCE_MS, first, LATE)
  if (begun === LATE) return new Response(resumeStream(reader, [UNDER_WAY_READ, first]), { headers })
  if (begun.done) return new Response(resumeStream(reader, [first]), { headers })
  const second = reader.read()
  const next = await within(0, second, LATE)
  if (next === LATE || !next.done) return new Response(resumeStream(reader, [first, second]), { headers })
  const [, message] = ONLY_MESSAGE.exec(new TextDecoder().decode(begun.value)) ?? []
  if (message === undefined) return new Response(begun.value, { headers })
  return new Response(message, {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  })
}

const UNDER_WAY_READ = Promise.resolve({ done: false as const, value: UNDER_WAY })

type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>

/** Puts the reads that have begun in front of the rest of the stream. */
function resumeStream(reader: Reader, begun: ReturnType<Reader['read']>[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await (begun.shift() ?? reader.read())
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

const JSON_TYPE = 'application/json'

/** What a client of the endpoint accepts. */
interface AcceptedTypes {
  readonly json: boolean
  readonly stream: boolean
}

/** Returns which of the two types of MCP's responses a request accepts. */
function acceptedTypes({ headers }: Request): AcceptedTypes {
  const accept = headers.get('accept')
  return { json: isAccepted(accept, JSON_TYPE), stream: isAccepted(accept, EVENT_STREAM_TYPE) }
}

/**
 * Returns a request with an Accept header that names both types, for the SDK, which refuses any other. Wildcards cover
 * them too, and a client may accept one of them alone.
 */
function withBothTypes(request: Request): Request {
  const headers = new Headers(request.headers)
  headers.set('accept', `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`)
  return new Request(request.url, { method: request.method, headers, signal: request.signal })
}

/**
 * Turns an event stream into JSON, for a client that accepts no stream: the responses alone, once the last is there.
 * Notifications of progress are left out.
 *
 * @param isBatch whether the client sent an array and gets one
 */
async function asJson(response: Response, { signal }: Request, isBatch: boolean): Promise<Response> {
  if (!isEventStream(response)) return response
  const responses: unknown[] = []
  for await (const { data } of eventsOf(response, signal))
    if (fieldsOf(data).method === undefined) responses.push(data)
  const headers = new Headers(response.headers)
  headers.set('content-type', JSON_TYPE)
  return new Response(JSON.stringify(isBatch ? responses : responses[0]), { headers })
}
