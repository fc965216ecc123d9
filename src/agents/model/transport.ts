import { machineNow } from '../../runtime/clock.ts'
import { EndpointFailure, errorMessageIn, explainErrorResponse, setting, withoutKey } from './failures.ts'
import type { ModelProvider, Send } from './providers.ts'

/** Bytes of a refusal that are read. @bound peer */
const MAX_ERROR_BYTES = 64 * 1024

/** Most bytes of a response, many times the longest useful one with events around every word. @bound peer */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

/** The endpoint did not stream; the next `send` returns the response that it has received. */
export class NotStreamed extends Error {
  override readonly name = 'AnsweredWhole'
}

/** The options of a `ModelTransport`. */
interface TransportOptions {
  provider: ModelProvider
  /** Whether to ask for a streamed response. */
  streams: boolean
  /** Milliseconds for which the endpoint may send nothing at all. */
  silenceMs: number
  /** Ends the request. */
  signal: AbortSignal
}

/**
 * Sends the requests of one call to the endpoint and nowhere else: follows no redirect, and uses no proxy for
 * loopback. Disposing of it ends the request.
 */
export class ModelTransport implements Disposable {
  readonly #options: TransportOptions
  readonly #quiet = new AbortController()
  readonly #over = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #held: Response | null = null
  /** Aborts when the request has to end. */
  readonly signal: AbortSignal

  constructor(options: TransportOptions) {
    this.#options = options
    this.signal = AbortSignal.any([options.signal, this.#quiet.signal, this.#over.signal])
  }

  /**
   * Sends a request.
   *
   * @throws EndpointFailure for an error response, NotStreamed, or what fetch throws
   */
  readonly send: Send = async (url, init = {}) => {
    const { provider, streams } = this.#options
    const held = this.#held
    this.#held = null
    if (held) return held
    this.#resetSilenceTimer()
    const headers = new Headers(init.headers)
    headers.set('user-agent', 'berth')
    const response = await fetch(url, {
      ...init,
      headers,
      signal: this.signal,
      redirect: 'manual',
      // Silence is measured here.
      timeout: false,
      ...(isLoopback(provider.baseUrl) ? { proxy: false as const } : {}),
    })
    if (!response.ok) throw await this.#failureOf(response)
    const monitored = this.#monitor(response)
    const type = response.headers.get('content-type') ?? ''
    if (/\bhtml\b/.test(type)) {
      throw new EndpointFailure(
        `The model's endpoint ${provider.baseUrl} answers with a web page. Correct ${setting(provider, 'base-url')}: it ends in /v1 mostly.`,
        'nothing',
      )
    }
    if (streams && /\bjson\b/.test(type) && !/event-stream|ndjson|jsonl/.test(type)) {
      this.#held = monitored
      throw new NotStreamed()
    }
    return monitored
  }

  /** The failure if the endpoint was silent for too long; else null. */
  get silence(): EndpointFailure | null {
    if (!this.#quiet.signal.aborted) return null
    const { provider, silenceMs } = this.#options
    return new EndpointFailure(
      `The model's endpoint ${provider.baseUrl} has sent nothing for ${silenceMs / 1_000} s.`,
      'again',
    )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#over.abort()
  }

  #resetSilenceTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#quiet.abort(), this.#options.silenceMs)
  }

  /** Returns the response with a limited length. Each piece restarts the timer for silence. */
  #monitor(response: Response): Response {
    this.#resetSilenceTimer()
    const { status, headers, body } = response
    let size = 0
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        this.#resetSilenceTimer()
        size += chunk.length
        if (size > MAX_RESPONSE_BYTES) throw this.#tooLong()
        controller.enqueue(chunk)
      },
    })
    return new Response(body?.pipeThrough(heard), { status, headers })
  }

  #tooLong(): EndpointFailure {
    const { baseUrl } = this.#options.provider
    return new EndpointFailure(`The model's endpoint ${baseUrl} sends a response without end.`, 'nothing')
  }

  async #failureOf(response: Response): Promise<EndpointFailure> {
    const { provider } = this.#options
    const { status, headers } = response
    const message = withoutKey(provider, errorMessageIn(await readBeginning(response)))
    const location = headers.get('location')
    const target = location !== null && URL.canParse(location, provider.baseUrl)
    return explainErrorResponse(provider, {
      status,
      message,
      // Without the query, which may hold secrets.
      location: target
        ? withoutKey(provider, new URL(location, provider.baseUrl).href.replace(/[?#].*$/s, ''))
        : null,
      retryAfterMs: retryAfter(headers),
    })
  }
}

/** Returns milliseconds that `Retry-After` (RFC 9110, section 10.2.3) asks to wait; null if nothing does. */
export function retryAfter(headers: Headers): number | null {
  const text = headers.get('retry-after')
  if (text === null) return null
  if (/^\d+(?:\.\d+)?$/.test(text.trim())) return Math.ceil(Number(text) * 1_000)
  const at = Date.parse(text)
  if (Number.isNaN(at)) return null
  // By the endpoint's own calendar: this machine's, and more so berth's, may show another time.
  const now = Date.parse(headers.get('date') ?? '')
  return Math.max(0, at - (Number.isNaN(now) ? machineNow() : now))
}

/** Reports whether a URL's host is this machine's loopback. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return /^(?:127(?:\.\d+){3}|\[::1\]|localhost|.+\.localhost)$/.test(hostname)
}

async function readBeginning(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_ERROR_BYTES) break
    }
  } catch {
    // The status is enough.
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}
