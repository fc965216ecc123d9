import type { BerthError } from '../errors.ts'
import type { Respond } from '../http/request-log.ts'
import type { Logger } from '../runtime/logger.ts'
import { CONTROL_SEGMENT, groupOf } from './route-groups.ts'

/** Milliseconds in which open requests get their responses after their commands have ended. */
const GRACE_MS = 1_000

/**
 * Lets requests in to the current state. Those that arrive while it is replaced wait for the next one: a caller sees the old
 * state or the new one, never a mixture.
 */
export class RequestGate {
  readonly #dispatch: Respond
  readonly #logger: Logger
  /** Requests that have no response yet. */
  #open = 0
  #whenIdle: (() => void) | null = null
  /** Resolves when no connection is open any more, once berth stops. */
  #drained: Promise<void> | null = null
  /** Resolves when requests are let in again; null while they are. */
  #closed: Promise<void> | null = null
  #failure: BerthError | null = null

  /** @param dispatch responds from the current state; never throws */
  constructor(dispatch: Respond, logger: Logger) {
    this.#dispatch = dispatch
    this.#logger = logger
  }

  /** Whether requests are let in, and get their responses from a state. */
  get isOpen(): boolean {
    return this.#closed === null && this.#failure === null
  }

  /** Responds to a request. Never throws. */
  readonly respond = (request: Request): Response | Promise<Response> => {
    if (this.#closed !== null) return this.#respondLater(request, this.#closed)
    if (this.#failure !== null) return Response.json(this.#failure.toBody(), { status: this.#failure.status })
    const response = this.#dispatch(request)
    // A request to the control API may itself replace the state, so it does not count as open.
    if (response instanceof Response || groupOf(request.url) === CONTROL_SEGMENT) return response
    this.#open += 1
    response.then(this.#requestEnded, this.#requestEnded)
    return response
  }

  readonly #requestEnded = (): void => {
    this.#open -= 1
    if (this.#open === 0) this.#whenIdle?.()
  }

  /** Responds from the next state. Drops requests of ended processes and deliveries of the last one. */
  async #respondLater(request: Request, open: Promise<void>): Promise<Response> {
    const { signal } = request
    await open
    return signal.aborted ? new Response(null, { status: 503 }) : this.respond(request)
  }

  /** Does something while no request is let in. */
  async whileClosed<T>(work: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#closed = promise
    try {
      return await work()
    } finally {
      this.#closed = null
      resolve()
    }
  }

  /** Responds to each further request with a failure, because there is no state. */
  fail(failure: BerthError): void {
    this.#failure = failure
  }

  /** Notes that berth stops. @param drained resolves when no connection is open any more */
  drain(drained: Promise<void>): void {
    this.#drained = drained
  }

  /** Resolves when no request is open any more, or after the grace that open ones have. */
  async requestsEnded(): Promise<void> {
    const { promise: idle, resolve } = Promise.withResolvers<void>()
    this.#whenIdle = resolve
    if (this.#open === 0) resolve()
    // At the end of berth those for the control API count too.
    const ended = this.#drained ?? idle
    const over = await Promise.race([ended.then(() => true), Bun.sleep(GRACE_MS).then(() => false)])
    if (!over && this.#drained) this.#logger.info('requests that went on at the stop are cut off')
    this.#whenIdle = null
  }
}
