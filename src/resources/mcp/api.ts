import { badRequest } from '../../errors.ts'
import { isCut } from '../../http/cut.ts'

/** Answers a request as the API does. */
export type Handle = (request: Request) => Response | Promise<Response>

/** Says that a request is part of the MCP request, and so from the same caller. */
export type Vouch = (request: Request) => void

/** A request to the API, made of a call. */
export interface ApiRequest {
  method: string
  /** Without a query, beginning with a slash; made by `pathOf` where it holds what a caller sent. */
  path: string
  query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  body?: object
  /** Answer with an event stream. */
  stream?: boolean
  /** Ends the request, and with it what it started. */
  signal: AbortSignal
}

/** What the API answered: its JSON. */
export interface ApiAnswer {
  status: number
  body: Readonly<Record<string, unknown>>
}

/** A fault that a test has set cuts the connection: there is no answer. */
export class ConnectionCut extends Error {
  override readonly name = 'ConnectionCut'
}

/** Headers that decide whose a request is, where it was sent to, and whether it was sent before. */
const PASSED = ['authorization', 'host', 'x-forwarded-proto', 'idempotency-key']

/**
 * The API as the caller of one MCP request reaches it. Each call is a request of its own to the API, with the caller's
 * own credential: the same checks, the same errors, the same journal and the same faults as by HTTP.
 */
export class CallersApi {
  readonly #handle: Handle
  readonly #vouch: Vouch
  readonly #origin: string
  readonly #headers: Readonly<Record<string, string>>

  /** @param request the MCP request, whose Host header has been checked */
  constructor(handle: Handle, request: Request, vouch: Vouch) {
    this.#handle = handle
    this.#vouch = vouch
    this.#origin = new URL(request.url).origin
    this.#headers = Object.fromEntries(
      PASSED.flatMap((name) => {
        const value = request.headers.get(name)
        return value === null ? [] : [[name, value]]
      }),
    )
  }

  /** Whether an answer is kept under a key, so that a repeated request gets it again. */
  get isRepeatable(): boolean {
    return this.#headers['idempotency-key'] !== undefined
  }

  /** Sends a request; resolves when its answer begins. @throws ConnectionCut */
  async send({ method, path, query = {}, body, stream = false, signal }: ApiRequest): Promise<Response> {
    const asked = new URLSearchParams(query).toString()
    const headers: Record<string, string> = {
      ...this.#headers,
      accept: stream ? 'text/event-stream' : 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const init = { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const request = new Request(`${this.#origin}${path}${asked && `?${asked}`}`, init)
    this.#vouch(request)
    const answer = await this.#handle(request)
    if (isCut(answer)) throw new ConnectionCut('A fault cut the connection.')
    return answer
  }

  /** The same, read whole. */
  async ask(request: ApiRequest): Promise<ApiAnswer> {
    return read(await this.send(request))
  }
}

/** Reads an answer whole. */
export async function read(answer: Response): Promise<ApiAnswer> {
  return { status: answer.status, body: (await answer.json()) as ApiAnswer['body'] }
}

/**
 * Fills a path's parameters in. Each stays one segment, whatever it holds.
 *
 * @param pattern such as `/servers/{serverId}/exec`
 * @throws BerthError 400 where a value is missing, is no text, or would change the path
 */
export function pathOf(pattern: string, values: Readonly<Record<string, unknown>>): string {
  return pattern.replaceAll(/\{([^}]+)\}/g, (_, name: string) => segmentOf(name, values[name]))
}

function segmentOf(name: string, value: unknown): string {
  // A dot segment is taken out of a URL even where it is escaped (URL Standard, 4.4).
  if (typeof value !== 'string' || /^(?:\.|\.\.|)$/.test(value) || !value.isWellFormed()) {
    throw badRequest(
      `"${name}": expected an id, got ${value === undefined ? 'nothing' : JSON.stringify(value)}.`,
    )
  }
  return encodeURIComponent(value)
}
