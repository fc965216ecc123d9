import type { HostRoutes } from '../../../http/listener.ts'
import type { SocketListener } from '../../../http/web-socket.ts'
import { exchange, type SiteRequest, type SiteResponse } from '../exchange.ts'
import type { Gateway } from '../gateway.ts'
import { CutOff, MalformedBody } from '../http1/body.ts'
import { headerOf, namesAndValues, Refusal, requestHead } from '../http1/head.ts'
import { badGateway, type OwnResponse, ownMessage, refusalResponse, unavailable } from '../own-response.ts'
import type { SiteState } from '../site-state.ts'
import { Bridge, MAX_SOCKETS } from './web-socket.ts'

/** Index at which the authority of a URL begins. All URLs begin with `http://`. */
const AUTHORITY = 'http://'.length
const DIGIT_9 = 57

/** A character that a request's target must not contain. */
const NOT_OF_TARGET = /[^\u0021-\u007e\u0080-\uffff]/

/** Fields that say how Bun and the client speak with each other. */
const OF_BUN: ReadonlySet<string> = new Set(['expect', 'sec-websocket-extensions', 'transfer-encoding'])

const CHUNKED = 'Transfer-Encoding: chunked\r\n'

/** The largest status that a `Response` may have. @bound system */
const LARGEST_STATUS = 599

/** The status besides 204 and 304 with which a `Response` has no body. */
const RESET_CONTENT = 205

const CLOSED = unavailable('The connection to the project was closed.')

const TOO_MANY_SOCKETS: OwnResponse = {
  ...unavailable(
    `At SLUG.localhost an app has at most ${MAX_SOCKETS} WebSockets at a time. Its own port has as many as it takes.`,
  ),
  retryAfter: 1,
}

/**
 * Forwards requests of the main port for `SLUG.localhost` to the site of that slug. Bun has parsed them, and limits their
 * heads to 16 KiB.
 */
export class SlugHosts implements HostRoutes {
  readonly #gateway: Gateway

  constructor(gateway: Gateway) {
    this.#gateway = gateway
  }

  respond(request: Request, server: Bun.Server<SocketListener>): Promise<Response | undefined> | null {
    const slug = slugOf(request.url)
    if (slug === null) return null
    const state = this.#gateway.bySlug(slug)?.state
    return state === undefined ? null : respondTo(request, server, state)
  }
}

/**
 * Returns the slug of a URL whose host is `SLUG.localhost`, else null. A request of the API, whose host begins with a
 * digit, costs one comparison.
 */
export function slugOf(url: string): string | null {
  if (url.charCodeAt(AUTHORITY) <= DIGIT_9) return null
  const end = url.indexOf('/', AUTHORITY)
  return /^([a-z0-9-]+)\.localhost\.?(?::\d*)?$/.exec(url.slice(AUTHORITY, end).toLowerCase())?.[1] ?? null
}

/** Responds to a request, or turns it into a WebSocket and resolves to undefined. */
async function respondTo(
  request: Request,
  server: Bun.Server<SocketListener>,
  state: SiteState,
): Promise<Response | undefined> {
  const { promise, resolve } = Promise.withResolvers<Response | undefined>()
  const disconnected = new AbortController()
  const signal = AbortSignal.any([request.signal, state.closing, disconnected.signal])
  const refuse = (error: unknown): Response => {
    if (error instanceof Refusal) return ownAnswer(refusalResponse(error), request)
    const isExpected = signal.aborted || error instanceof CutOff || error instanceof MalformedBody
    if (!isExpected) state.reportFailure(error)
    return ownAnswer(CLOSED, request)
  }
  let siteRequest: SiteRequest
  try {
    siteRequest = siteRequestOf(request, server.requestIP(request)?.address ?? '', signal)
    state.checkHost(siteRequest.head.host)
  } catch (error) {
    return refuse(error)
  }
  const { upgrade } = siteRequest.head
  if (upgrade && state.webSockets.size >= MAX_SOCKETS) return ownAnswer(TOO_MANY_SOCKETS, request)
  const bridge = upgrade ? new Bridge(state) : null
  const served = exchange(siteRequest, state, async (response) => {
    if (response.tunnel === null || bridge === null) {
      await respond(response, request, signal, resolve, () => disconnected.abort())
      return
    }
    const protocol = headerOf(response.lines, 'sec-websocket-protocol')
    const headers: Record<string, string> = protocol === null ? {} : { 'sec-websocket-protocol': protocol }
    const isUpgraded = server.upgrade(request, { data: bridge, headers })
    resolve(isUpgraded ? undefined : new Response(null, { status: 400 }))
    if (isUpgraded) await bridge.join(response.tunnel)
  })
  // What has responded already keeps its response.
  void served
    .then(() => resolve(ownAnswer(CLOSED, request)))
    .catch((error) => resolve(refuse(error)))
    .finally(() => bridge?.release())
  return promise
}

/**
 * Returns a request of the main port for the exchange. Bun has checked its framing.
 *
 * @throws Refusal
 */
function siteRequestOf(
  { method, url, headers, body }: Request,
  address: string,
  signal: AbortSignal,
): SiteRequest {
  const target = url.slice(url.indexOf('/', AUTHORITY))
  if (NOT_OF_TARGET.test(target)) throw new Refusal(400, 'The request line is not METHOD TARGET HTTP/1.1.')
  let lines = ''
  for (const [name, value] of headers) {
    // Content-Length without a body, such as of a GET whose body Bun has dropped.
    if (name === 'content-length' && body === null && value !== '0') continue
    if (!OF_BUN.has(name)) lines += `${name}: ${value}\r\n`
  }
  if (body !== null && headers.get('content-length') === null) lines += CHUNKED
  // Bun decodes non-ASCII characters of a URL as UTF-8, and of fields as Latin-1.
  const head = requestHead(method, Buffer.from(target).toString('latin1'), 1, lines)
  const rest = head.framing === 'none' ? null : body
  return { head, begun: null, rest, address, signal, sendContinue() {} }
}

/** Passes a response to Bun. Resolves when Bun has taken all of it, or the client has disconnected. */
async function respond(
  response: SiteResponse,
  request: Request,
  signal: AbortSignal,
  resolve: (response: Response) => void,
  disconnected: () => void,
): Promise<void> {
  const { status, framing, begun, rest } = response
  if (status > LARGEST_STATUS) {
    return resolve(ownAnswer(badGateway(`${status} is no status of HTTP`), request))
  }
  const headers = new Headers()
  for (const [name, value] of namesAndValues(response.lines)) {
    if (name !== 'transfer-encoding') headers.append(name, value)
  }
  if (framing === 'none' || status === RESET_CONTENT) return resolve(new Response(null, { status, headers }))
  // For bytes without a type, Bun would make one up.
  if (rest === null && headers.has('content-type'))
    return resolve(new Response(begun as Uint8Array<ArrayBuffer>, { status, headers }))
  const over = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => over.resolve())
  const pieces = notEmpty(begun, rest)
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { value, done } = await pieces.next()
        // Bun ends a stream that is closed as if it were complete.
        if (signal.aborted) throw new CutOff()
        if (!done) return controller.enqueue(value)
        controller.close()
        over.resolve()
      } catch (error) {
        controller.error(error)
        over.reject(error)
      }
    },
    cancel: disconnected,
  })
  resolve(new Response(body, { status, headers }))
  await over.promise
}

/** Yields the content of a response in pieces that are not empty. */
async function* notEmpty(
  begun: Uint8Array | null,
  rest: AsyncIterable<Uint8Array> | null,
): AsyncGenerator<Uint8Array, void> {
  if (begun !== null && begun.length > 0) yield begun
  if (rest !== null) for await (const piece of rest) if (piece.length > 0) yield piece
}

function ownAnswer(response: OwnResponse, request: Request): Response {
  const { headers, content } = ownMessage(response, request.headers.get('accept'))
  return new Response(request.method === 'HEAD' ? null : content, { status: response.status, headers })
}
