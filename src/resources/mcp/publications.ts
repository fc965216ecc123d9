import { within } from '../../runtime/wait.ts'
import type { ApiRequest, ApiResponse, CallersApi } from './callers-api.ts'

/** Most publications whose outcome is remembered. @bound client */
const MOST_REMEMBERED = 1_000

/** Lines of the log of a publication in which its phase is looked for. */
const PHASE_LINES = 50

/** Sources of log lines that are no phase. */
const NO_PHASES: ReadonlySet<unknown> = new Set(['app', 'berth'])

/** A publication that a call has begun. */
interface Publication {
  readonly outcome: Promise<ApiResponse>
  /** What became of it; null while it goes on. */
  response: ApiResponse | null
}

/** The publications that calls have begun. One that takes long goes on after its call has responded. */
export class Publications {
  /** By account and server, in the order in which they began. */
  readonly #begun = new Map<string, Publication>()
  readonly #patienceMs: number

  /** @param patienceMs milliseconds after which a call responds in any case */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /** Publishes the workspace of a server. Responds at the end, or after a while with the phase so far. */
  async publish(serverId: string, request: ApiRequest, api: CallersApi): Promise<ApiResponse> {
    const { signal } = request
    // Until the response a client that leaves cancels the request, as over HTTP.
    const whole = new AbortController()
    const cancel = (): void => whole.abort()
    signal.addEventListener('abort', cancel)
    try {
      const publication = this.#begin(
        `${api.accountId} ${serverId}`,
        api.fetchJson({ ...request, signal: whole.signal }),
      )
      const response = await this.#within(publication, signal)
      return (
        response ?? { status: 202, body: { status: 'starting', phase: await phaseOf(serverId, api, signal) } }
      )
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  /** Waits for the end of the publication of a server, then returns its log and what became of it. */
  async followLog(serverId: string, request: ApiRequest, api: CallersApi): Promise<ApiResponse> {
    const { signal } = request
    const begun = this.#begun.get(`${api.accountId} ${serverId}`)
    const outcome = begun && (await this.#within(begun, signal))
    const log = await api.fetchJson(request)
    if (log.status >= 400) return log
    if (begun !== undefined && outcome === null)
      return extended(log, { status: 'starting', phase: await phaseOf(serverId, api, signal) })
    if (outcome && outcome.status >= 400)
      return extended(log, { status: 'failed', error: outcome.body.error, message: outcome.body.message })
    return extended(log, await stateOf(serverId, api, signal))
  }

  #begin(key: string, outcome: Promise<ApiResponse>): Publication {
    const publication: Publication = { outcome, response: null }
    outcome.then(
      (response) => {
        publication.response = response
      },
      () => {
        if (this.#begun.get(key) === publication) this.#begun.delete(key)
      },
    )
    this.#begun.delete(key)
    this.#begun.set(key, publication)
    if (this.#begun.size > MOST_REMEMBERED) this.#begun.delete(this.#begun.keys().next().value ?? '')
    return publication
  }

  /** Resolves to what became of a publication, or to null if that takes longer than clients wait. */
  #within({ outcome }: Publication, signal: AbortSignal): Promise<ApiResponse | null> {
    return within(this.#patienceMs, outcome, null, signal)
  }
}

const extended = ({ status, body }: ApiResponse, more: object): ApiResponse => ({
  status,
  body: { ...more, ...body },
})

/** Returns the phase that the log of a publication has come to. */
async function phaseOf(serverId: string, api: CallersApi, signal: AbortSignal): Promise<string> {
  const path = `/servers/${encodeURIComponent(serverId)}/deployments/logs`
  const { status, body } = await api.fetchJson({
    method: 'GET',
    path,
    query: { tail: String(PHASE_LINES) },
    signal,
  })
  const lines = status === 200 ? (body.logs as { source: string; phase?: string }[]) : []
  const last = lines.findLast(({ source, phase }) => phase !== undefined || !NO_PHASES.has(source))
  return last?.phase ?? last?.source ?? 'start'
}

/** Returns what a server publishes, as far as a list says. */
async function stateOf(serverId: string, api: CallersApi, signal: AbortSignal): Promise<object> {
  const path = `/servers/${encodeURIComponent(serverId)}/deployments`
  const { status, body } = await api.fetchJson({ method: 'GET', path, signal })
  const [deployment] = status === 200 ? (body.deployments as { url: string; live: boolean }[]) : []
  if (deployment === undefined) return { status: 'none' }
  return { status: deployment.live ? 'live' : 'not live', url: deployment.url }
}
