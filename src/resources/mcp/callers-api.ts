import { badRequest } from '../../errors.ts'
import { CutConnection } from '../../http/cut.ts'

/** Handles a request to the API. */
export type Handle = (request: Request) => Response | Promise<Response>

/** Marks a request as part of the MCP request, so it runs with the same caller. */
type Vouch = (request: Request) => void

/** A request to the API, made from a tool call. */
export interface ApiRequest {
  method: string
  /** Starts with a slash and has no query. Use `fillPath` if it contains input of the caller. */
  path: string
  query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  body?: object
  /** Asks for an event stream. */
  stream?: boolean
  /** Cancels the request and everything that it started. */
  signal: AbortSignal
  /** Receives the request before it is sent. */
  prepare?: (request: Request) => void
}

/** A response of the API, with its JSON body. */
export interface ApiResponse {
  status: number
  body: Readonly<Record<string, unknown>>
}

/** Thrown if an injected fault cuts the connection: there is no response. */
export class ConnectionCut extends Error {
  override readonly name = 'ConnectionCut'
}

/** Headers that determine the caller, the host and idempotency. */
const FORWARDED_HEADERS = ['authorization', 'host', 'x-forwarded-proto', 'idempotency-key']

/**
 * Calls the API on behalf of the caller of one MCP request. Each call is a request of its own with the caller's
 * credential, so checks, errors, journal and injected faults are the same as over HTTP.
 */
export class CallersApi {
  readonly #handle: Handle
  readonly #vouch: Vouch
  readonly #origin: string
  readonly #headers: Readonly<Record<string, string>>
  /** The caller's account. */
  readonly accountId: string

  /**
   * @param request the MCP request, whose Host header has been checked
   * @param accountId the account of its caller
   */
  constructor(handle: Handle, request: Request, vouch: Vouch, accountId: string) {
    this.accountId = accountId
    this.#handle = handle
    this.#vouch = vouch
    this.#origin = new URL(request.url).origin
    this.#headers = Object.fromEntries(
      FORWARDED_HEADERS.flatMap((name) => {
        const value = request.headers.get(name)
        return value === null ? [] : [[name, value]]
      }),
    )
  }

  /**
   * Sends a request. Resolves when its response begins.
   *
   * @throws ConnectionCut if an injected fault cuts the connection
   */
  async send({
    method,
    path,
    query = {},
    body,
    stream = false,
    signal,
    prepare,
  }: ApiRequest): Promise<Response> {
    const asked = new URLSearchParams(query).toString()
    const headers: Record<string, string> = {
      ...this.#headers,
      accept: stream ? 'text/event-stream' : 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const init = { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const request = new Request(`${this.#origin}${path}${asked && `?${asked}`}`, init)
    this.#vouch(request)
    prepare?.(request)
    const response = await this.#handle(request)
    if (response instanceof CutConnection) throw new ConnectionCut('A fault cut the connection.')
    return response
  }

  /**
   * Sends a request and reads its complete response.
   *
   * @throws ConnectionCut if an injected fault cuts the connection
   */
  async fetchJson(request: ApiRequest): Promise<ApiResponse> {
    return readResponse(await this.send(request))
  }
}

/** The first status of a failure. */
const FIRST_FAILURE = 400

/** Most characters of a response that is no JSON which a tool's result repeats. */
const SHOWN_TEXT = 1_000

/**
 * Reads a complete response. An injected fault may respond with something else than JSON, as a proxy does; it becomes
 * an error.
 *
 * @throws ConnectionCut if an injected fault cuts the connection meanwhile
 */
export async function readResponse(response: Response): Promise<ApiResponse> {
  const { status } = response
  const text = await response.text().catch(() => {
    throw new ConnectionCut('A fault cut the connection within the response.')
  })
  try {
    return { status, body: JSON.parse(text) as ApiResponse['body'] }
  } catch {
    const message = `The response, with status ${status}, is not JSON: ${text.slice(0, SHOWN_TEXT)}`
    return { status: Math.max(status, FIRST_FAILURE), body: { error: 'unexpected_response', message } }
  }
}

/**
 * Fills in the parameters of a path. Each value stays one segment, with any content.
 *
 * @param pattern such as `/servers/{serverId}/exec`
 * @throws BerthError 400 if a value is missing, is not text, or would change the path
 */
export function fillPath(pattern: string, values: Readonly<Record<string, unknown>>): string {
  return pattern.replaceAll(/\{([^}]+)\}/g, (_, name: string) => segmentOf(name, values[name]))
}

function segmentOf(name: string, value: unknown): string {
  // A URL parser removes a dot segment even if it is escaped (URL Standard, 4.4).
  if (typeof value !== 'string' || /^(?:\.|\.\.|)$/.test(value) || !value.isWellFormed()) {
    throw badRequest(
      `"${name}": expected an id, got ${value === undefined ? 'nothing' : JSON.stringify(value)}.`,
    )
  }
  return encodeURIComponent(value)
}
