import { BerthError, ConnectionError, errorOf, errorOfEvent } from './errors.js'
import { readEvents, type StreamEvent } from './stream.js'
import { VERSION } from './version.js'

/** Where berth is, and who calls it. */
export interface TransportOptions {
  /** The address of the API, such as `http://127.0.0.1:4747`. */
  readonly baseUrl: string
  /** An API key, or the admin token for the control API. */
  readonly credential: string
  /** How often a request is tried again where that is safe. */
  readonly retries: number
}

/** A request, relative to the base URL. */
export interface TransportRequest {
  readonly method?: string
  /** With its query. */
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>
  readonly signal?: AbortSignal | null | undefined
}

/** The longest `Retry-After` that a client waits by itself, in milliseconds. */
const LONGEST_WAIT_MS = 30_000

/** The upper end of the first random delay between two tries, in milliseconds; it doubles with each try. */
const FIRST_DELAY_MS = 200

/** How many redirects within the same origin are followed. */
const REDIRECTS = 5

/** POSTs that only create something: `Idempotency-Key` makes them safe to repeat. */
const CREATES = /^\/(?:servers|keys|webhooks|servers\/[^/]+\/(?:projects|tasks|builds))$/

const REPEATABLE = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])

/** The versions of berth that a warning was given about. */
const warned = new Set<string>()

/**
 * Sends requests: adds the credential, tries again where that cannot do anything twice, refuses redirects to other origins, and makes
 * errors of failures.
 */
export class Transport {
  readonly baseUrl: string

  constructor(readonly options: TransportOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, '')
    if (!/^https?:\/\//.test(this.baseUrl) || !URL.canParse(this.baseUrl))
      throw new Error(
        `The address of the API is ${JSON.stringify(options.baseUrl)}, which is no http or https URL.`,
      )
  }

  /**
   * Sends a request and returns its response, whose status is 2xx.
   *
   * @throws BerthError if it fails; the reason of the signal if that aborts
   */
  async send(request: TransportRequest): Promise<Response> {
    const response = await this.#respond(request)
    if (response.ok) return response
    const body = await response.text().catch(() => '')
    throw errorOf(`${request.method ?? 'GET'} ${request.path.split('?')[0]}`, response, body)
  }

  /** Sends a request with a JSON body, if it has one, and returns the JSON of its response. */
  async json<Result>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Result> {
    const response = await this.send({
      method,
      path,
      signal,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    })
    return (await whole(response.json(), signal)) as Result
  }

  /** Stands in for `fetch` of the generated layer: like {@link send}, but a failure is a response. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url)
    const body = request.body ? new Uint8Array(await request.arrayBuffer()) : undefined
    return this.#respond({
      method: request.method,
      path: request.url.startsWith(this.baseUrl)
        ? request.url.slice(this.baseUrl.length)
        : url.pathname + url.search,
      headers: Object.fromEntries(request.headers),
      ...(body && { body }),
      signal: request.signal,
    })
  }

  /**
   * Reads a stream of events. If the connection breaks off, it goes on after the last event by `Last-Event-ID`.
   *
   * @param resumes whether the entries of the stream have ids; otherwise a break is an error
   * @throws ConnectionError if the connection breaks off and cannot be resumed; BerthError for an event `error`
   */
  async *events(
    { headers, ...request }: TransportRequest,
    { resumes }: { resumes: boolean },
  ): AsyncGenerator<StreamEvent> {
    let last: string | null = null
    let failures = 0
    while (true) {
      try {
        const response = await this.send({
          ...request,
          headers: {
            ...headers,
            accept: 'text/event-stream',
            ...(last !== null && { 'last-event-id': last }),
          },
        })
        for await (const event of readEvents(response, request.signal)) {
          if (event.event === 'error') throw errorOfEvent(event.data, response.headers.get('x-request-id'))
          last = event.id ?? last
          failures = 0
          yield event
        }
        return
      } catch (error) {
        if (!resumes || !(error instanceof ConnectionError) || failures >= this.options.retries) throw error
        await pause(delayOf(failures++), request.signal)
      }
    }
  }

  async #respond(request: TransportRequest): Promise<Response> {
    const method = request.method ?? 'GET'
    const path = request.path.split('?')[0] ?? ''
    const creates = method === 'POST' && CREATES.test(path)
    const once = request.body instanceof ReadableStream
    const repeatable = !once && (creates || REPEATABLE.has(method))
    const headers: Record<string, string> = { ...request.headers }
    headers.authorization = `Bearer ${this.options.credential}`
    headers['user-agent'] ??= `berth-client/${VERSION} (typescript)`
    if (creates) headers['idempotency-key'] ??= crypto.randomUUID()
    let uncertain = false
    for (let failures = 0; ; failures++) {
      const isLast = failures >= this.options.retries
      try {
        const response = await this.#fetch(method, this.baseUrl + request.path, headers, request)
        this.#compareVersion(response)
        if (method === 'DELETE' && response.status === 404 && uncertain) return deleted(path)
        const wait = response.status === 429 && !once ? retryAfter(response) : null
        const failed = repeatable && [502, 503, 504].includes(response.status)
        if (isLast || (wait === null && !failed)) return response
        uncertain ||= failed
        await response.body?.cancel()
        await pause(wait ?? retryAfter(response) ?? delayOf(failures), request.signal)
      } catch (error) {
        if (request.signal?.aborted || error instanceof BerthError) throw error
        const refused = isRefused(error)
        if (isLast || (once && !refused) || !(repeatable || refused)) {
          const what = refused
            ? 'does not accept connections: is berth running?'
            : 'closed the connection without a response.'
          throw new ConnectionError(`${method} ${path}: ${this.baseUrl} ${what}`, {}, { cause: error })
        }
        uncertain ||= !refused
        await pause(delayOf(failures), request.signal)
      }
    }
  }

  /** Sends a request once, following redirects within the origin. */
  async #fetch(
    method: string,
    url: string,
    headers: Record<string, string>,
    { body, signal }: TransportRequest,
  ): Promise<Response> {
    const { origin } = new URL(url)
    for (let redirects = 0; ; redirects++) {
      const init = {
        method,
        headers,
        redirect: 'manual',
        // On a connection that was used before, Bun repeats a request by itself: then nobody knows that the first may have had its effect.
        ...(process.versions.bun !== undefined && method !== 'GET' && { keepalive: false }),
        ...(signal && { signal }),
        ...(body !== undefined && { body: body as BodyInit }),
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      } satisfies RequestInit & { duplex?: string }
      const response = await fetch(url, init)
      const location = response.headers.get('location')
      if (response.status < 300 || response.status >= 400 || location === null) return response
      const target = new URL(location, url)
      const requestId = response.headers.get('x-request-id')
      const details = { status: response.status, requestId }
      if (target.origin !== origin)
        throw new BerthError(
          `${method} ${new URL(url).pathname} was redirected to ${target.origin}, which is not ${origin}: the credential is not sent there. Set the base URL to the right address.`,
          details,
        )
      const keepsMethod = ['GET', 'HEAD'].includes(method) || [307, 308].includes(response.status)
      if (redirects === REDIRECTS || !keepsMethod || body instanceof ReadableStream)
        throw new BerthError(`${method} ${new URL(url).pathname} was redirected to ${target.href}.`, details)
      await response.body?.cancel()
      url = target.href
    }
  }

  #compareVersion(response: Response): void {
    const version = response.headers.get('x-berth-version')
    if (version === null || version === VERSION || warned.has(version)) return
    warned.add(version)
    process.emitWarning(
      `berth at ${this.baseUrl} has version ${version}, and its client ${VERSION}: install the client of the same version.`,
      'BerthVersionWarning',
    )
  }
}

/**
 * Reads the body of a response.
 *
 * @throws ConnectionError if it breaks off
 */
export async function whole<Body>(body: Promise<Body>, signal?: AbortSignal | null): Promise<Body> {
  try {
    return await body
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw new ConnectionError('The connection broke off before the response was whole.', {}, { cause: error })
  }
}

/** Writes a query, without parameters that are undefined. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** The response to a DELETE whose effect an earlier try had. */
function deleted(path: string): Response {
  const id = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
  return Response.json({ id, deleted: true })
}

/** A random time up to a bound that doubles with each failure ("full jitter"). */
const delayOf = (failures: number): number => Math.random() * FIRST_DELAY_MS * 2 ** failures

/** The milliseconds of `Retry-After`; null if there is none, or a longer one than a client waits. */
function retryAfter(response: Response): number | null {
  const given = response.headers.get('retry-after')
  if (given === null) return null
  const seconds = /^\d+$/.test(given) ? Number(given) : (Date.parse(given) - Date.now()) / 1000
  const wait = Math.max(0, seconds * 1000)
  return wait <= LONGEST_WAIT_MS ? wait : null
}

/** Whether a connection was refused, so that nothing was sent: as Node.js and as Bun report it. */
function isRefused(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] }
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return true
  return isRefused(cause) || (Array.isArray(errors) && errors.length > 0 && errors.every(isRefused))
}

async function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      if (signal?.aborted) reject(signal.reason)
      else resolve()
    }
    signal?.addEventListener('abort', done)
  })
}
