import { createMcpHandler, isJsonContentType, type McpHttpHandler } from '@modelcontextprotocol/server'
import { BerthError, badRequest } from '../../errors.ts'
import type { Callers } from '../../http/access.ts'
import { BODY_LIMIT, readBytes } from '../../http/body.ts'
import type { Caller } from '../../http/caller.ts'
import { decodeText, parseJsonText } from '../../http/json.ts'
import type { Logger } from '../../runtime/logger.ts'
import { CallersApi, type Handle } from './api.ts'
import { sentWhole } from './quick.ts'
import { serverFor } from './server.ts'
import { Sessions } from './sessions.ts'
import type { OperationTool } from './tool.ts'

const SESSION = 'mcp-session-id'
const PARSE_ERROR = -32700
const SESSION_NOT_FOUND = -32001

/** What the endpoint works on. */
export interface EndpointParts {
  version: string
  tools: readonly OperationTool[]
  handle: Handle
  callers: Callers
  logger: Logger
}

/** MCP over streamable HTTP: protocol 2026-07-28, and those of 2025 beside it. */
export class Endpoint {
  readonly #callers: Callers
  readonly #sessions = new Sessions()
  readonly #plain: McpHttpHandler
  readonly #streaming: McpHttpHandler

  constructor({ version, tools, handle, callers, logger }: EndpointParts) {
    this.#callers = callers
    const sessions = this.#sessions
    const make = (responseMode: 'auto' | 'sse'): McpHttpHandler =>
      createMcpHandler(
        ({ era, requestInfo: request }) => {
          if (request === undefined) throw new Error('MCP is served over HTTP alone.')
          const session = era === 'legacy' ? request.headers.get(SESSION) : null
          // A token that expires while its call is under way serves it to the end; one that is ended does not.
          const api = new CallersApi(handle, request, (part) => callers.vouch(part, request))
          return serverFor({
            version,
            tools,
            caller: this.#callerOf(request),
            api,
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
    // A call may take long: its answer begins soon, and stays awake, so that nobody gives it up.
    this.#streaming = make('sse')
  }

  /** The caller of a request that was let in. */
  #callerOf(request: Request): Caller {
    return this.#callers.admit(request, 'resource')
  }

  /** Answers a request of a caller who was let in. @throws BerthError 400, 401, 413 */
  async answer(request: Request): Promise<Response> {
    const session = request.headers.get(SESSION)
    const asker = session === null ? null : { credentialId: this.#callerOf(request).credentialId, session }
    if (asker && this.#sessions.isOver(asker)) {
      return refusal(404, SESSION_NOT_FOUND, 'The session was ended. Begin a new one with initialize.')
    }
    if (request.method === 'DELETE') {
      if (!asker) throw badRequest('Say which session to end, by the header Mcp-Session-Id.')
      this.#sessions.end(asker)
      return new Response(null, { status: 200 })
    }
    // The SDK refuses all else without reading it.
    if (!isJsonContentType(request.headers.get('content-type'))) {
      return this.#plain.fetch(request)
    }
    const bytes = await readBytes(request, BODY_LIMIT)
    // Asked again: a body may take its time.
    this.#callerOf(request)
    let message: unknown
    try {
      message = parseJsonText(decodeText(bytes, 'The body'), 'The body')
    } catch (error) {
      if (error instanceof BerthError) return refusal(400, PARSE_ERROR, error.message)
      throw error
    }
    const messages = (Array.isArray(message) ? message : [message]) as unknown[]
    if (asker) {
      for (const id of messages.flatMap(calledOff)) this.#sessions.cancel(asker, id)
    }
    const handler = messages.some((one) => methodOf(one) === 'tools/call') ? this.#streaming : this.#plain
    const answer = await sentWhole(await handler.fetch(request, { parsedBody: message }))
    const begins = messages.some((one) => methodOf(one) === 'initialize')
    if (begins && answer.ok) answer.headers.set(SESSION, this.#sessions.next())
    return answer
  }
}

const methodOf = (message: unknown): unknown => (message as { method?: unknown } | null)?.method

/** The id of the request that a message calls off; none for any other message. */
function calledOff(message: unknown): unknown[] {
  if (methodOf(message) !== 'notifications/cancelled') return []
  return [(message as { params?: { requestId?: unknown } | null }).params?.requestId]
}

const refusal = (status: number, code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status })
