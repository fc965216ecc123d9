import { STATUS_CODES } from 'node:http'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { BerthError, ERROR_STATUS } from '../../errors.ts'
import { bearerOf, type Callers } from '../../http/authentication.ts'
import { CutConnection } from '../../http/cut.ts'
import { type HostOptions, hostGuard } from '../../http/host.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { BackendFailure } from './compute/backend.ts'
import type { FaultError, RequestFacts } from './fault.ts'
import type { FaultStore, Strike } from './store.ts'

/** Seconds after which a client may repeat a request that was refused temporarily. */
const RETRY_AFTER_S = 1

/** Statuses of temporary refusals (RFC 9110, 15.6.4; RFC 6585, 4). */
const TEMPORARY_STATUSES = [429, 503]

/** Options of a `FaultGate`. */
export interface FaultGateOptions {
  store: FaultStore
  callers: Callers
  host: HostOptions
  ids: Ids
  /** Paths whose requests only carry other requests, which pass the gate too. */
  carriers: ReadonlySet<string>
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
    const { delayMs, effect } = store.strike(facts)
    if (delayMs > 0) await elapse(delayMs, [request.signal, ending])
    // The client has disconnected.
    if (request.signal.aborted) return new CutConnection()
    if (ending.aborted) return this.#errorResponse({ status: 503 }, 'berth is being stopped or reset.')
    return effect === null ? next(request) : this.#apply(request, effect, next)
  }

  async #apply(
    request: Request,
    { faultId, effect }: NonNullable<Strike['effect']>,
    next: RequestHandler,
  ): Promise<Response> {
    if ('error' in effect) {
      return this.#errorResponse(
        effect.error,
        `The fault ${faultId}, which a test has set, answers in place of the API.`,
      )
    }
    if ('disconnect' in effect) return this.#cut(request)
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
      await elapse(null, [request.signal, store.ending])
    }
    return new CutConnection()
  }

  #errorResponse(error: FaultError, message: string): Response {
    return errorResponse(error, this.#options.ids.next('req'), message)
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
      const accountId = hasCaller ? this.#options.callers.admit(request, 'resource').accountId : undefined
      return { operation, method, path, accountId, isCarrier: this.#options.carriers.has(path) }
    } catch (error) {
      if (error instanceof BerthError) return null
      throw error
    }
  }
}

/** Resolves after `ms` milliseconds of real time, if given, or when a signal fires. */
async function elapse(ms: number | null, signals: readonly AbortSignal[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const over = (): void => resolve()
  const timer = ms === null ? undefined : setTimeout(over, ms)
  for (const signal of signals) {
    signal.addEventListener('abort', over)
    if (signal.aborted) over()
  }
  await promise
  clearTimeout(timer)
  for (const signal of signals) signal.removeEventListener('abort', over)
}

/** Returns a response as the API itself gives for a failure. */
function errorResponse(error: FaultError, requestId: string, message: string): Response {
  const { status } = error
  const headers: Record<string, string> = { 'x-request-id': requestId }
  if (TEMPORARY_STATUSES.includes(status)) headers['retry-after'] = String(RETRY_AFTER_S)
  const body = { error: error.code ?? codeOf(status), message: error.message ?? message }
  return Response.json(body, { status, headers })
}

/** Returns the API's code for a status, or HTTP's name of a status that the API does not use. */
function codeOf(status: number): string {
  const [code] = Object.entries(ERROR_STATUS).find(([, known]) => known === status) ?? []
  return code ?? STATUS_CODES[status]?.toLowerCase().replace(/[^a-z]+/g, '_') ?? 'error'
}
