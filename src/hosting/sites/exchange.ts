import { ComputeError } from '../../compute/sandbox.ts'
import { machineNow } from '../../runtime/clock.ts'
import { codeOf } from '../../runtime/error-info.ts'
import type { AppLink, AppPort } from './app-port.ts'
import { Body, chunk, LAST_CHUNK, MalformedBody } from './http1/body.ts'
import type { ByteStream } from './http1/byte-stream.ts'
import {
  BadResponse,
  checkResponseBeginning,
  type Framing,
  headerOf,
  isRepeatable,
  linesForApp,
  linesForClient,
  namesAndValues,
  parseResponse,
  Refusal,
  type RequestHead,
  readHead,
} from './http1/head.ts'
import {
  badGateway,
  crashedMeanwhile,
  FAILED,
  type OwnResponse,
  ownMessage,
  REASONS,
  unavailable,
  unreachable,
} from './own-response.ts'
import type { SiteState } from './site-state.ts'
import type { FileRequest, FileResponse, ServeFiles } from './upstream.ts'

/** The content of a message. */
export interface Content {
  /** What has arrived with the head, or all if it is in memory; not empty if it is in chunks. */
  readonly begun: Uint8Array | null
  /** What is to come; null if nothing is. */
  readonly rest: AsyncIterable<Uint8Array> | null
}

/** A request for a site, by whichever way it has come. */
export interface SiteRequest extends Content {
  readonly head: RequestHead
  /** Address of the client. */
  readonly address: string
  /** Aborts when the client disconnects or the site closes. */
  readonly signal: AbortSignal
  /** Tells a client that waits before it sends the body to go on (RFC 9110, section 15.2.1). */
  sendContinue(): void
}

/** A response for the client, by whichever way that takes it. */
export interface SiteResponse extends Content {
  readonly status: number
  /** The status and the reason. */
  readonly statusText: string
  /** The field lines, each with its CRLF. */
  readonly lines: string
  /** How the content is framed for a client of HTTP/1.1. */
  readonly framing: Framing
  /** The connection to the app if that has accepted a WebSocket. */
  readonly tunnel: ByteStream | null
}

/** Sends a response to the client. Resolves when it is sent, or the client has disconnected. */
export type Respond = (response: SiteResponse) => Promise<void>

/** Upgrades a connection to a WebSocket, in a request or a response. */
export const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

/** Error: an app has closed the connection before the head of its response was complete. */
class NoResponse extends Error {
  override readonly name = 'NoResponse'

  constructor() {
    super('it closed the connection before its response was complete')
  }
}

/**
 * Sends a request to the site's upstream, waits while that is not ready, and passes the response on as it arrives.
 *
 * @throws Refusal, or MalformedBody once the response has begun, if the request's body is malformed; CutOff if the response
 *   breaks off
 */
export async function exchange(request: SiteRequest, state: SiteState, respond: Respond): Promise<void> {
  const endUse = state.beginUse()
  try {
    await dispatch(request, state, respond)
  } finally {
    endUse()
  }
}

/**
 * A request that may be repeated goes over any idle connection. The app may be closing that one, so the request is sent again,
 * once and over a new connection, if it ends before a byte of the response. Every other request gets a connection of its own.
 */
async function dispatch(request: SiteRequest, state: SiteState, respond: Respond): Promise<void> {
  const { head, signal } = request
  let mayReuse = isRepeatable(head)
  /** The app's port that has closed an idle connection under the request, unless by plan, as when it is replaced. */
  let closedBy: AppPort | null = null
  /** When the request has waited long enough, from the first wait on. */
  let deadline: number | null = null
  let refusal: string | null = null
  while (!signal.aborted) {
    const { upstream, port } = state
    if (upstream.kind === 'files') return serveFiles(upstream.serve, request, state, respond)
    if (upstream.kind === 'down') return respond(ownResponse(unavailable(upstream.reason), head))
    const now = performance.now()
    if (upstream.kind === 'app' && port !== null) {
      const idle = mayReuse ? port.takeIdle() : null
      const link =
        idle ??
        (await port.connect(upstream.host ?? '127.0.0.1', signal, deadline ?? now + state.times.waitMs))
      if ('stream' in link) {
        if (await throughApp(link, request, state, respond)) return
        mayReuse = false
        closedBy = state.upstream.kind === 'app' ? port : null
        continue
      }
      refusal = link.refusal
      // It had not closed an idle connection, but ended, maybe by the request: the next process is spared it.
      if (closedBy === port) return respond(await explainClose(request, state))
    }
    deadline ??= now + state.times.waitMs
    const left = deadline - performance.now()
    if (left > 0)
      await state.changed(upstream.kind === 'app' ? Math.min(left, state.times.retryMs) : left, signal)
    else if (upstream.kind !== 'starting') return respond(ownResponse(unreachable(refusal), head))
    else if (upstream.late) return serveFiles(upstream.late, request, state, respond)
    else return respond(ownResponse(unreachable(null), head))
  }
}

/** Sends a request over a connection. Returns false if the app was closing that, so that the request is to be sent again. */
async function throughApp(
  link: AppLink,
  request: SiteRequest,
  state: SiteState,
  respond: Respond,
): Promise<boolean> {
  const { stream } = link
  const { received } = stream
  const cutOff = () => stream.end(true)
  request.signal.addEventListener('abort', cutOff)
  let isReusable = false
  let bodyFault: unknown = null
  const upload = sendRequest(stream, request, state)?.catch((error) => {
    bodyFault = error
    cutOff()
  })
  try {
    const answer = await responseOf(stream, request).catch((error: Error) => error)
    if (bodyFault instanceof MalformedBody) throw new Refusal(400, BAD_BODY)
    if (request.signal.aborted) return true
    if (answer instanceof Error) {
      // The app may have been closing the connection.
      if (answer instanceof NoResponse && link.isReused && stream.received === received && mayRepeat(state))
        return false
      await respond(await failureOf(answer, request, state))
      return true
    }
    const { response, body, keepAlive } = answer
    // What a client has sent through a tunnel before it disconnected still reaches the app.
    if (response.tunnel !== null) request.signal.removeEventListener('abort', cutOff)
    await respond(response)
    // An app may respond before it has read all of the request.
    if (upload !== undefined) await Promise.race([upload, stream.closing])
    if (bodyFault instanceof MalformedBody) throw bodyFault
    // An app may leave a body unread and take it for the next request, whose client would get a wrong response.
    isReusable = keepAlive && body.isOver && request.head.framing === 'none' && response.tunnel === null
    return true
  } finally {
    request.signal.removeEventListener('abort', cutOff)
    link.release(isReusable)
  }
}

/** Reports whether an app that has closed an idle connection may be sent the request again: not if it has crashed. */
const mayRepeat = ({ upstream }: SiteState): boolean => upstream.kind !== 'starting' || !upstream.hasCrashed

/** Message for a client whose body is malformed. */
export const BAD_BODY = 'The body is not in chunks as its header says.'

/** Sends the request to the app, see `sendMessage`. */
function sendRequest(app: ByteStream, request: SiteRequest, state: SiteState): Promise<void> | null {
  const { head } = request
  const start = `${head.method} ${head.target} HTTP/1.1\r\n${linesForApp(head.fields)}`
  const forwarded = state.forwardedLines(request.address, head.host)
  const text = `${start}${head.upgrade ? UPGRADE : ''}${forwarded}\r\n`
  return sendMessage(app, text, head.framing === 'chunked', request)
}

/**
 * Sends a message, in one write if all of it is there.
 *
 * @returns null if it is sent; otherwise a promise, which resolves then or when the connection is closed
 */
export function sendMessage(
  to: ByteStream,
  head: string,
  isChunked: boolean,
  content: Content,
): Promise<void> | null {
  const { begun, rest } = content
  const isFlushed = to.writeMessage(head, begun !== null && isChunked ? chunk(begun) : begun)
  return isFlushed && rest === null && !isChunked ? null : sendRest(to, isChunked, rest)
}

async function sendRest(to: ByteStream, isChunked: boolean, rest: Content['rest']): Promise<void> {
  await to.flushed()
  if (rest !== null) {
    for await (const piece of rest) {
      if (to.isClosed) return
      if (piece.length > 0) await to.send(isChunked ? chunk(piece) : piece)
    }
  }
  if (isChunked) await to.send(LAST_CHUNK)
}

/** Reads the head of the app's response. @throws BadResponse, MalformedBody, NoResponse */
async function responseOf(
  app: ByteStream,
  request: SiteRequest,
): Promise<{ response: SiteResponse; body: Body; keepAlive: boolean }> {
  const { method, upgrade } = request.head
  let isContinued = false
  for (;;) {
    const text = await readHead(app, checkResponseBeginning)
    if (text === null) throw new NoResponse()
    const { status, statusText, fields, framing, length, keepAlive } = parseResponse(text, method)
    if (status === 101 && !upgrade) throw new BadResponse('it switches protocols without being asked')
    if (status >= 200 || status === 101) {
      const body = new Body(app, framing, length)
      const tunnel = status === 101 ? app : null
      const lines = linesForClient(fields)
      return {
        response: { status, statusText, lines, framing, tunnel, ...beginningOf(body) },
        body,
        keepAlive,
      }
    }
    if (status === 100 && !isContinued) request.sendContinue()
    isContinued ||= status === 100
  }
}

/** Returns the content of a body whose head has just been read. @throws MalformedBody */
export function beginningOf(body: Body): Content {
  const begun = body.take() ?? null
  return { begun, rest: body.isOver ? null : body }
}

/** Returns the response for a request to which the app has given none that can be passed on. */
function failureOf(error: Error, request: SiteRequest, state: SiteState): Promise<SiteResponse> {
  if (error instanceof NoResponse) return explainClose(request, state)
  if (error instanceof BadResponse)
    return Promise.resolve(ownResponse(badGateway(error.message), request.head))
  if (!(error instanceof MalformedBody)) throw error
  return Promise.resolve(ownResponse(badGateway('its body is not in chunks'), request.head))
}

/** Returns the response for an app that has closed the connection, maybe because its process has ended. */
async function explainClose({ head, signal }: SiteRequest, state: SiteState): Promise<SiteResponse> {
  const crash = await state.crash(signal)
  return ownResponse(crash === null ? badGateway(new NoResponse().message) : crashedMeanwhile(crash), head)
}

async function serveFiles(
  serve: ServeFiles,
  request: SiteRequest,
  state: SiteState,
  respond: Respond,
): Promise<void> {
  const response = await serve(fileRequestOf(request.head)).then(
    (file) => fileResponse(file, request),
    (error) => {
      // One with a code is of a file, and what it says is no visitor's affair.
      if (error instanceof ComputeError && codeOf(error) === undefined)
        return ownResponse(unreachable(error.message), request.head)
      state.reportFailure(error)
      return ownResponse(FAILED, request.head)
    },
  )
  await respond(response)
}

function fileRequestOf({ method, target, fields }: RequestHead): FileRequest {
  const headers = new Map<string, string>()
  for (const [name, value] of namesAndValues(fields.lines)) {
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return { method, target, header: (name) => headers.get(name) ?? null }
}

/** Returns a response that berth makes itself. */
function madeResponse(
  status: number,
  headers: readonly (readonly [name: string, value: string])[],
  framing: Framing,
  content: Content,
): SiteResponse {
  const date = new Date(machineNow()).toUTCString()
  return {
    status,
    statusText: `${status} ${REASONS[status] ?? ''}`,
    lines: headers.reduce((lines, [name, value]) => `${lines}${name}: ${value}\r\n`, `Date: ${date}\r\n`),
    framing,
    tunnel: null,
    ...content,
  }
}

const NO_CONTENT: Content = { begun: null, rest: null }

/** Returns a response of berth's own, in place of the site's. @param head of the request; null if it is unreadable */
export function ownResponse(response: OwnResponse, head: RequestHead | null): SiteResponse {
  const accept = head === null ? null : headerOf(head.fields.lines, 'accept')
  const { headers, content } = ownMessage(response, accept)
  return head?.method === 'HEAD'
    ? madeResponse(response.status, headers, 'none', NO_CONTENT)
    : madeResponse(response.status, headers, 'length', { begun: content, rest: null })
}

function fileResponse({ status, headers, body }: FileResponse, { head, signal }: SiteRequest): SiteResponse {
  const fields = Object.entries(headers)
  const isStream = body instanceof ReadableStream
  if (head.method === 'HEAD' || status === 204 || status === 304 || signal.aborted) {
    if (isStream) void body.cancel().catch(() => {})
    return madeResponse(status, fields, 'none', NO_CONTENT)
  }
  const content = isStream ? { begun: null, rest: piecesOf(body, signal) } : { begun: body, rest: null }
  if (headers['content-length'] !== undefined) return madeResponse(status, fields, 'length', content)
  if (isStream) return madeResponse(status, [...fields, ['transfer-encoding', 'chunked']], 'chunked', content)
  return madeResponse(status, [...fields, ['content-length', String(body?.length ?? 0)]], 'length', content)
}

/** Yields the pieces of a stream. Cancels it when the signal aborts: one that waits for events ends with its client. */
async function* piecesOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader()
  const cancel = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done || signal.aborted) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}
