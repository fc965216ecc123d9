/** Applies faults to requests: delays, refuses, replaces or cuts off the response. */
import { STATUS_CODES } from 'node:http'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { BerthError, ERROR_STATUS } from '../../errors.ts'
import { bearerOf, type Callers } from '../../http/authentication.ts'
import { CutConnection } from '../../http/cut.ts'
import { type HostOptions, hostGuard } from '../../http/host.ts'
import { namedClient, type OwnClient } from '../../http/own-client.ts'
import { wantsSocket } from '../../http/web-socket.ts'
import type { Ids } from '../../runtime/ids.ts'
import { LONGEST_TIMER_MS, pause } from '../../runtime/wait.ts'
import type { BackendFailure } from './compute/active.ts'
import type { FaultError, FaultResponse, RequestFacts } from './fault.ts'
import type { AppliedFaults, FaultStore } from './store.ts'

/** Seconds after which a client may repeat a request that was refused temporarily. */
const RETRY_AFTER_S = 1

/** Statuses of temporary refusals (RFC 9110, 15.6.4; RFC 6585, 4). */
const TEMPORARY_STATUSES = [429, 503]

/** Milliseconds within which Bun has sent what a response has so far. */
const SEND_MS = 20

/** Options of a `FaultGate`. */
interface FaultGateOptions {
  store: FaultStore
  callers: Callers
  host: HostOptions
  ids: Ids
  version: string
  /** Reports whether a fault applies to a path only if it names exactly that path. */
  needsNamedFault: (path: string) => boolean
  /** First segments of the paths of the dashboard's page, of its files, and of signing in to it. */
  dashboardSegments: ReadonlySet<string>
  /** Called before a request to which faults apply continues. */
  onApplied?: ((request: Request, applied: AppliedFaults['applied']) => void) | undefined
  /** Returns the compute driver's failure switch; called only for faults of the backend. */
  backend: () => Promise<BackendFailure>
}

/** Responds to a request without faults. */
type RequestHandler = (request: Request) => Response | Promise<Response>

/** Applies faults to requests while any are set. */
export class FaultGate {
  readonly #options: FaultGateOptions
  readonly #check: (host: string | null) => void
  readonly #operations = new OperationIndex(listOperations(API_OPERATIONS))

  constructor(parts: FaultGateOptions) {
    this.#options = parts
    this.#check = hostGuard(parts.host)
  }

  /** Applies the faults to a request, or passes it to `next`. Never throws. */
  async handle(request: Request, next: RequestHandler): Promise<Response> {
    const { store } = this.#options
    const { ending } = store
    const facts = this.#factsOf(request)
    if (facts === null) return next(request)
    const { delayMs, effect, applied } = store.apply(facts)
    if (applied.length > 0) this.#options.onApplied?.(request, applied)
    if (delayMs > 0) await pause(delayMs, request.signal, ending)
    // The client has disconnected.
    if (request.signal.aborted) return new CutConnection()
    if (ending.aborted) return this.#errorResponse({ status: 503 }, 'berth is being stopped or reset.')
    return effect === null ? next(request) : this.#apply(request, effect, next)
  }

  async #apply(
    request: Request,
    { faultId, effect }: NonNullable<AppliedFaults['effect']>,
    next: RequestHandler,
  ): Promise<Response> {
    if ('error' in effect) {
      return this.#errorResponse(
        effect.error,
        `The fault ${faultId}, which a test has set, responds in place of the API. "berth faults clear" removes all faults.`,
      )
    }
    if ('respond' in effect) return responseOf(effect.respond)
    if ('disconnect' in effect) return this.#cut(request)
    if ('lose_response' in effect) return this.#lose(request, await next(request))
    if ('truncate' in effect) return truncated(await next(request), effect.truncate.bytes)
    const backend = await this.#options.backend()
    return backend.during(`The fault ${faultId}, which a test has set, makes the compute backend fail.`, () =>
      next(request),
    )
  }

  /** Cuts a connection. A response to HEAD has no body that could fail, so the request times out instead. */
  async #cut(request: Request): Promise<Response> {
    const { store } = this.#options
    if (request.method === 'HEAD') {
      store.expire(request)
      await pause(LONGEST_TIMER_MS, request.signal, store.ending)
    }
    return new CutConnection()
  }

  /**
   * Cuts the connection in place of a response. What the request began is done first: a stream of it is read to its end.
   * A stream that only shows something may have none.
   */
  async #lose(request: Request, { body }: Response): Promise<Response> {
    const reads = request.method === 'GET' || request.method === 'HEAD'
    if (body !== null) {
      const reader = body.getReader()
      const give = (): void => void reader.cancel().catch(() => {})
      const signals = [request.signal, this.#options.store.ending]
      for (const signal of signals) signal.addEventListener('abort', give)
      if (reads || signals.some(({ aborted }) => aborted)) give()
      // A stream that breaks off is lost like any other.
      while (!(await reader.read().catch(() => ({ done: true }))).done);
      for (const signal of signals) signal.removeEventListener('abort', give)
    }
    return this.#cut(request)
  }

  #errorResponse(error: FaultError, message: string): Response {
    const { ids, version } = this.#options
    return errorResponse(error, { 'x-request-id': ids.next('req'), 'x-berth-version': version }, message)
  }

  /** Returns the facts of a request; null if it is refused anyway, for its Host header or its key. */
  #factsOf(request: Request): RequestFacts | null {
    const { method, url } = request
    const [, path = '/'] = /^[^/]*\/\/[^/?#]*(\/[^?#]*)?/.exec(url) ?? []
    const operation = this.#operations.match(method === 'HEAD' ? 'GET' : method, path)?.id
    try {
      this.#check(request.headers.get('host'))
      // Every operation needs a key. Requests for other paths may have one.
      const hasCaller = operation !== undefined || bearerOf(request) !== null
      const client = this.#clientOf(request, path)
      const accountId = hasCaller ? this.#options.callers.admit(request, 'resource').accountId : undefined
      const needsPath = this.#options.needsNamedFault(path)
      return { operation, method, path, accountId, client, needsPath }
    } catch (error) {
      if (error instanceof BerthError) return null
      throw error
    }
  }

  /**
   * Returns which of berth's own clients sent a request. The dashboard has to prove it: by the session of a browser,
   * unless the request is for its page.
   */
  #clientOf(request: Request, path: string): OwnClient | null {
    if (this.#options.dashboardSegments.has(path.split('/', 2)[1] ?? '')) return 'dashboard'
    const named = namedClient(request.headers)
    const hasSession = this.#options.callers.hasIdentified(request)
    // A browser's WebSocket has no headers of a page's own.
    if (hasSession && wantsSocket(request)) return 'dashboard'
    return named === 'dashboard' && !hasSession ? null : named
  }
}

/** Returns a response as the API itself gives for a failure. */
function errorResponse(error: FaultError, own: Record<string, string>, message: string): Response {
  const { status, retry_after: retryAfter = TEMPORARY_STATUSES.includes(status) ? RETRY_AFTER_S : null } =
    error
  const headers = new Headers(own)
  if (retryAfter !== null) headers.set('retry-after', String(retryAfter))
  for (const [name, value] of Object.entries(error.headers ?? {})) headers.set(name, value)
  const body = { error: error.code ?? codeOf(status), message: error.message ?? message }
  return Response.json(body, { status, headers })
}

/** Returns the response that a fault describes: nothing of the API's own is in it, not even its `x-request-id`. */
function responseOf({ status, content_type: type, headers = {}, body = '' }: FaultResponse): Response {
  const all = new Headers(headers)
  if (type !== undefined) all.set('content-type', type)
  else if (body !== '' && !all.has('content-type')) all.set('content-type', 'text/plain;charset=utf-8')
  return new Response(body === '' ? null : body, { status, headers: all })
}

/** Returns a response whose connection is cut after some bytes of its body. A shorter body arrives whole. */
function truncated(response: Response, bytes: number): Response {
  const reader = response.body?.getReader()
  if (reader === undefined) return response
  let left = bytes
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) return controller.close()
      const part = value.subarray(0, left)
      left -= part.length
      if (part.length > 0) controller.enqueue(part)
      if (part.length === value.length) return
      void reader.cancel().catch(() => {})
      // Bun sends the head and what is queued before the next turn of the loop.
      await new Promise((resolve) => setTimeout(resolve, SEND_MS))
      // A failure without a reason is not printed.
      controller.error(undefined)
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return new Response(body, { status: response.status, headers: response.headers })
}

/** Returns the API's code for a status, or HTTP's name of a status that the API does not use. */
function codeOf(status: number): string {
  const [code] = Object.entries(ERROR_STATUS).find(([, known]) => known === status) ?? []
  return code ?? STATUS_CODES[status]?.toLowerCase().replace(/[^a-z]+/g, '_') ?? 'error'
}
