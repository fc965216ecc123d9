import { setsSession } from '../../../http/session-cookie.ts'
import type { AppConnection } from '../app-connection.ts'
import { Exchange } from '../exchange.ts'
import type { Body } from '../http1/body.ts'
import { Field } from '../http1/fields.ts'
import { isIdempotent } from '../http1/request-head.ts'
import type { ResponseHead } from '../http1/response-head.ts'
import { badGateway, type OwnResponse, ownMessage, refusalResponse, unavailable } from '../own-response.ts'
import type { Requester } from '../requester.ts'
import type { SiteClient, SiteState } from '../site-state.ts'
import type { FileRequest, ServeFiles } from '../upstream.ts'
import { type AppRequestHead, appRequestHead, targetOf } from './request-head.ts'

/** Bytes of a response buffered for the main port's client before the app is paused. */
const HIGH_WATER = 256 * 1024

const CRLF = Buffer.from('\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const EMPTY = Buffer.alloc(0)

/** The largest status that a `Response` may have. */
const LARGEST_STATUS = 599

/** The status besides 204 and 304 with which a `Response` has no body. */
const RESET_CONTENT = 205

const CLOSED = unavailable('The connection to the project was closed.')

/** Responds to a request of the main port by the rules of the site's own port. */
export function respondTo(
  request: Request,
  address: string,
  state: SiteState,
  { upgrade }: { upgrade: boolean },
): Promise<Response> {
  const head =
    state.checkHost(request.headers.get('host')) ?? appRequestHead(request, address, state, upgrade)
  if ('message' in head) return Promise.resolve(ownResponse(refusalResponse(head), request))
  const client = new RequestClient(request, head, state)
  client.begin()
  return client.response
}

/** The client's side of a request of the main port. Turns the response of the exchange into a `Response`. */
class RequestClient implements Requester, SiteClient {
  readonly response: Promise<Response>
  readonly #request: Request
  readonly #head: AppRequestHead
  readonly #state: SiteState
  readonly #exchange: Exchange
  #resolve: (response: Response) => void = () => {}
  #complete: boolean
  /** Controller of the response's body, if that is a stream. */
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  /** Called when the app accepts more of the request's body. */
  #resumed: (() => void) | null = null
  /** Called when the client accepts more of a file. */
  #drained: (() => void) | null = null
  /** Ends the stream of a file. */
  #cancelFile: (() => void) | null = null
  #isOver = false

  constructor(request: Request, head: AppRequestHead, state: SiteState) {
    this.#request = request
    this.#head = head
    this.#state = state
    this.#complete = head.framing === 'none'
    this.#exchange = new Exchange(this, state)
    this.response = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  begin(): void {
    this.#state.addClient(this)
    this.#request.signal.addEventListener('abort', () => this.#abandon(), { once: true })
    this.#exchange.begin()
  }

  get method(): string {
    return this.#request.method
  }

  get hasBody(): boolean {
    return this.#head.framing !== 'none'
  }

  get isRepeatable(): boolean {
    return !this.hasBody && isIdempotent(this.method)
  }

  /** The body is a stream, which can be read once. */
  readonly canResend = false

  get isComplete(): boolean {
    return this.#complete
  }

  get isDisconnected(): boolean {
    return this.#isOver
  }

  /** Bun adds chunks itself. */
  readonly unchunks = true

  /** WebSockets of the main port are bridged, so no request becomes a tunnel. */
  readonly tunnel = null

  sendTo(app: AppConnection): void {
    const { bytes } = this.#head
    app.send(bytes, 0, bytes.length, false)
    const { body } = this.#request
    if (!this.#complete && body !== null) void this.#pump(body)
  }

  adjustReading(): void {
    if (this.#exchange.full) return
    this.#resumed?.()
    this.#resumed = null
  }

  /** Drops interim responses, which a `Response` cannot carry. */
  interim(): void {}

  respond(
    bytes: Buffer,
    _start: number,
    end: number,
    bodyEnd: number,
    head: ResponseHead,
    body: Body,
  ): boolean {
    const { status } = head
    if (status > LARGEST_STATUS) {
      this.respondOwn(badGateway(`${status} is no status of HTTP`))
      this.#abandon()
      return true
    }
    const headers = headersOf(bytes, head)
    const content = contentOf(bytes, end, bodyEnd, body)
    if (body.framing === 'none' || status === RESET_CONTENT) {
      this.#resolve(new Response(null, { status, headers }))
    } else if (body.done) {
      this.#resolve(new Response(Buffer.concat(content), { status, headers }))
    } else {
      this.#resolve(new Response(this.#stream(content), { status, headers }))
      return this.#hasRoom
    }
    return true
  }

  respondBody(bytes: Buffer, from: number, to: number, body: Body): boolean {
    for (const piece of contentOf(bytes, from, to, body)) this.#controller?.enqueue(piece)
    return this.#controller === null || this.#hasRoom
  }

  respondOwn(response: OwnResponse): void {
    this.#resolve(ownResponse(response, this.#request))
  }

  serve(serve: ServeFiles): void {
    void this.#serve(serve)
  }

  finish(): void {
    if (this.#isOver) return
    this.#end()
    this.#controller?.close()
  }

  /** Always resets the connection: Bun ends a stream that is closed with the last chunk, as if it were complete. */
  cutOff(): void {
    if (this.#isOver) return
    this.#end()
    this.#controller?.error(new Error('the response of the site was cut off'))
    this.respondOwn(CLOSED)
  }

  /** Does nothing: Bun limits the time of connections to the main port. */
  sweep(): void {}

  terminate(): void {
    this.#exchange.abort()
    this.cutOff()
  }

  get #hasRoom(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0
  }

  #stream(first: readonly Uint8Array[]): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          for (const piece of first) controller.enqueue(piece)
        },
        // Deferred: a write within `pull` would call `pull` again.
        pull: () =>
          queueMicrotask(() => {
            this.#exchange.drained()
            this.#drained?.()
          }),
        cancel: () => this.#abandon(),
      },
      { highWaterMark: HIGH_WATER, size: (piece) => piece?.byteLength ?? 0 },
    )
  }

  /** Sends the request's body to the app. */
  async #pump(body: ReadableStream<Uint8Array>): Promise<void> {
    const chunked = this.#head.framing === 'chunked'
    try {
      for await (const piece of body) {
        if (this.#isOver) return
        if (piece.length === 0) continue
        const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
        const framed = chunked
          ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF])
          : bytes
        this.#exchange.sendOn(framed, 0, framed.length)
        await this.#whenWritable()
        if (this.#isOver) return
      }
      this.#complete = true
      const last = chunked ? LAST_CHUNK : EMPTY
      if (!this.#isOver) this.#exchange.sendOn(last, 0, last.length)
    } catch {
      this.#abandon()
    }
  }

  /** Resolves when the app accepts more, or the exchange is over. */
  async #whenWritable(): Promise<void> {
    if (!this.#exchange.full || this.#isOver) return
    await new Promise<void>((resolve) => {
      this.#resumed = resolve
    })
  }

  async #serve(serve: ServeFiles): Promise<void> {
    let begun = false
    try {
      const { status, headers, body } = await serve(fileRequestOf(this.#request))
      const bodiless = this.method === 'HEAD' || status === 204 || status === 304
      if (body instanceof ReadableStream && (bodiless || this.#isOver)) await body.cancel()
      if (this.#isOver) return
      begun = true
      if (body instanceof ReadableStream && !bodiless) {
        this.#resolve(new Response(this.#stream([]), { status, headers }))
        await this.#copy(body)
      } else {
        const content = bodiless ? null : (body as Uint8Array<ArrayBuffer> | null)
        this.#resolve(new Response(content, { status, headers }))
      }
      if (!this.#isOver) this.#exchange.served()
    } catch (error) {
      if (!this.#isOver) this.#exchange.serveFailed(error, begun)
    }
  }

  /** Copies a file's stream at the client's pace until it ends or the client disconnects. */
  async #copy(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader()
    // A stream that waits for events, such as that of live reloads, ends with its client.
    this.#cancelFile = () => void reader.cancel().catch(() => {})
    for (;;) {
      const { value, done } = await reader.read()
      if (done || this.#isOver) return
      this.#controller?.enqueue(value)
      if (this.#hasRoom) continue
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
      if (this.#isOver) return
    }
  }

  /** Ends the exchange, because the client has disconnected. */
  #abandon(): void {
    if (this.#isOver) return
    this.#end()
    this.#exchange.abort()
    this.respondOwn(CLOSED)
  }

  #end(): void {
    this.#isOver = true
    this.#state.removeClient(this)
    this.#cancelFile?.()
    this.#drained?.()
    this.#resumed?.()
  }
}

/** Returns the fields of an app's head for a `Response`, without those of the app's connection. */
function headersOf(bytes: Buffer, { fields, connection }: ResponseHead): Headers {
  const headers = new Headers()
  for (let index = 0; index < fields.count; index += 1) {
    const kind = fields.kind[index]
    if (kind === Field.connection || kind === Field.hop || kind === Field.upgrade) continue
    if (kind === Field.transferEncoding) continue
    const name = fields.name(bytes, index)
    if (kind !== Field.contentLength && connection.named.includes(name)) continue
    const value = fields.value(bytes, index)
    if (kind === Field.setCookie && setsSession(value)) continue
    headers.append(name, value)
  }
  return headers
}

/** Returns the content in a part of a response's body, without chunks. */
function contentOf(bytes: Buffer, from: number, to: number, { framing, pieces }: Body): Buffer[] {
  if (framing !== 'chunked' || pieces === null) return from === to ? [] : [bytes.subarray(from, to)]
  const content: Buffer[] = []
  for (let at = 0; at < pieces.length; at += 2) content.push(bytes.subarray(pieces[at], pieces[at + 1]))
  pieces.length = 0
  return content
}

const fileRequestOf = (request: Request): FileRequest => ({
  method: request.method,
  target: targetOf(request),
  header: (name) => request.headers.get(name),
})

function ownResponse(response: OwnResponse, request: Request): Response {
  const { headers, content } = ownMessage(response, request.headers.get('accept'))
  return new Response(request.method === 'HEAD' ? null : content, { status: response.status, headers })
}
