import { machineNow } from '../../runtime/clock.ts'
import { EndpointFailure, errorMessageIn, explainErrorResponse, setting, withoutKey } from './failures.ts'
import type { Provider, Send } from './providers.ts'

/** Bytes of a refusal that are read. */
const MAX_ERROR_BYTES = 64 * 1024

/** Bytes that an answer may have: many times the longest that makes sense, events around every word included. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

/** A whole answer came where a stream was asked for; `send` gives it out at the next call. */
export class NotStreamed extends Error {
  override readonly name = 'AnsweredWhole'
}

/** What a transport needs to know. */
export interface TransportOptions {
  provider: Provider
  /** An answer in pieces is wanted. */
  streams: boolean
  /** Milliseconds for which the endpoint may send nothing at all. */
  silenceMs: number
  /** Ends the request. */
  signal: AbortSignal
}

/**
 * The way of one request to the endpoint and nowhere else: a redirect is not followed, and what this machine serves
 * is not asked through a proxy. Disposing of it ends the request.
 */
export class Transport implements Disposable {
  readonly #options: TransportOptions
  readonly #quiet = new AbortController()
  readonly #over = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #held: Response | null = null
  /** Ends the request: for what is asked of a model. */
  readonly signal: AbortSignal

  constructor(options: TransportOptions) {
    this.#options = options
    this.signal = AbortSignal.any([options.signal, this.#quiet.signal, this.#over.signal])
  }

  /** Sends a request. @throws EndpointFailure if the answer is a refusal, AnsweredWhole, or what fetch throws */
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
    const answer = this.#monitor(response)
    const type = response.headers.get('content-type') ?? ''
    if (/\bhtml\b/.test(type)) {
      throw new EndpointFailure(
        `The model's endpoint ${provider.baseUrl} answers with a web page. Correct ${setting(provider, 'base-url')}: it ends in /v1 mostly.`,
        'nothing',
      )
    }
    if (streams && /\bjson\b/.test(type) && !/event-stream|ndjson|jsonl/.test(type)) {
      this.#held = answer
      throw new NotStreamed()
    }
    return answer
  }

  /** The failure where the endpoint was silent for too long; null if it was not. */
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

  /** Returns the answer within bounds, each piece of which shows that the endpoint lives. */
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
    return new EndpointFailure(`The model's endpoint ${baseUrl} sends an answer without end.`, 'nothing')
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
      // Without what a query may hold.
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

/** Reports whether an address is of this machine alone. */
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
    // The status says enough.
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}
