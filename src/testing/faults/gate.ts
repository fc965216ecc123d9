import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { BerthError } from '../../errors.ts'
import { bearerOf, type Callers } from '../../http/authentication.ts'
import { CutConnection } from '../../http/cut.ts'
import { type HostOptions, hostGuard } from '../../http/host.ts'
import type { Ids } from '../../runtime/ids.ts'
import { errorAnswer } from './answer.ts'
import type { BackendFailure } from './compute/backend.ts'
import type { RequestFacts } from './fault.ts'
import type { FaultStore, Strike } from './store.ts'

/** What the gate needs. */
export interface GateParts {
  store: FaultStore
  callers: Callers
  host: HostOptions
  ids: Ids
  /** Paths whose requests only carry others, which come here as well. */
  carriers: ReadonlySet<string>
  /** Has the compute driver fail in the work of a request; asked where a fault says so. */
  backend: () => Promise<BackendFailure>
}

/** Answers a request as if there were no fault. */
type GoOn = (request: Request) => Response | Promise<Response>

/** Where requests pass while faults are set. */
export class FaultGate {
  readonly #parts: GateParts
  readonly #check: (host: string | null) => void
  readonly #operations = new OperationIndex(listOperations(API_OPERATIONS))

  constructor(parts: GateParts) {
    this.#parts = parts
    this.#check = hostGuard(parts.host)
  }

  /** Lets a request go on, or has happen to it what the faults say. Never throws. */
  async handle(request: Request, goOn: GoOn): Promise<Response> {
    const { store } = this.#parts
    const { ending } = store
    const facts = this.#factsOf(request)
    if (facts === null) return goOn(request)
    const { delayMs, effect } = store.strike(facts)
    if (delayMs > 0) await elapse(delayMs, [request.signal, ending])
    // Nobody waits for the answer any more: nothing is done.
    if (request.signal.aborted) return new CutConnection()
    if (ending.aborted) return this.#answer({ status: 503 }, 'berth is being stopped or reset.')
    return effect === null ? goOn(request) : this.#happens(request, effect, goOn)
  }

  async #happens(
    request: Request,
    { of, does }: NonNullable<Strike['effect']>,
    goOn: GoOn,
  ): Promise<Response> {
    if ('error' in does) {
      return this.#answer(does.error, `The fault ${of}, which a test has set, answers in place of the API.`)
    }
    if ('disconnect' in does) return this.#cut(request)
    const backend = await this.#parts.backend()
    return backend.during(`The fault ${of}, which a test has set, makes the compute backend fail.`, () =>
      goOn(request),
    )
  }

  /** Cuts a connection: at once, or, where an answer has no body that could fail, by having the request time out. */
  async #cut(request: Request): Promise<Response> {
    const { store } = this.#parts
    if (request.method === 'HEAD') {
      store.expire(request)
      await elapse(null, [request.signal, store.ending])
    }
    return new CutConnection()
  }

  #answer(error: Parameters<typeof errorAnswer>[0], message: string): Response {
    return errorAnswer(error, this.#parts.ids.next('req'), message)
  }

  /** What is known of a request; null where it gets its refusal as always: another's Host, or no valid key. */
  #factsOf(request: Request): RequestFacts | null {
    const { method, url } = request
    const [, path = '/'] = /^[^/]*\/\/[^/?#]*(\/[^?#]*)?/.exec(url) ?? []
    const operation = this.#operations.match(method === 'HEAD' ? 'GET' : method, path)?.id
    try {
      this.#check(request.headers.get('host'))
      // Every operation needs a key. A path that is no operation may come with one.
      const hasCaller = operation !== undefined || bearerOf(request) !== null
      const accountId = hasCaller ? this.#parts.callers.admit(request, 'resource').accountId : undefined
      return { operation, method, path, accountId, isCarrier: this.#parts.carriers.has(path) }
    } catch (error) {
      if (error instanceof BerthError) return null
      throw error
    }
  }
}

/** Resolves after so many milliseconds of physical time, where they are given, or as soon as a signal fires. */
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
