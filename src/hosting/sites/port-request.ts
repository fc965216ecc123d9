import type { AppConnection, CutOff } from './app-connection.ts'
import type { BufferedWriter } from './buffered-writer.ts'
import { Exchange } from './exchange.ts'
import { FileResponder, ParsedRequest } from './file-responder.ts'
import { Body } from './http1/body.ts'
import type { Refusal } from './http1/head.ts'
import { RequestHead } from './http1/request-head.ts'
import type { ResponseHead } from './http1/response-head.ts'
import { putRequestHead, putResponseHead } from './http1/rewrite.ts'
import { type OwnResponse, ownBytes } from './own-response.ts'
import type { Requester, Tunnel } from './requester.ts'
import type { ClientDescription, SiteState } from './site-state.ts'
import type { ServeFiles } from './upstream.ts'

const EMPTY = Buffer.alloc(0)

/** Longest request that can be sent again, see `Requester.canResend`. */
const MAX_RESENT_BYTES = 64 * 1024

/** Refusal of a body that is malformed. */
export const BAD_BODY: Refusal = { status: 400, message: 'The body is not in chunks as its header says.' }

/** The connection of a `PortRequest`. */
export interface RequestConnection {
  /** Writes to the client. */
  readonly writer: BufferedWriter
  /** Whether the client has disconnected. */
  readonly isClosed: boolean
  /** See `Requester.adjustReading`. */
  adjustReading(): void
  /**
   * Passes everything that the client sends to `PortRequest.sendOn` from now on.
   *
   * @returns the bytes that the client has sent ahead, or null
   */
  becomeTunnel(): Buffer | null
  /** Called when the response is complete. */
  requestEnded(): void
  /** Called when the response cannot be completed, see `Requester.cutOff`. */
  cutOff(how: CutOff): void
}

/**
 * A request on a site's own port: passes its head and body to the exchange, and writes the response in HTTP/1.1 to
 * the connection. A connection has one, which it uses for its requests one after the other.
 */
export class PortRequest implements Requester, Tunnel {
  readonly #connection: RequestConnection
  readonly #writer: BufferedWriter
  readonly #state: SiteState
  readonly #exchange: Exchange
  readonly #head: RequestHead
  readonly #body = new Body()
  /** The bytes of the head and of the part of the body that arrived with it, up to `#bodyEnd`; empty after the end. */
  #bytes: Buffer = EMPTY
  #bodyEnd = 0
  /** Whether another request may follow on the connection. */
  #keepAlive = true
  /** Writes the response if that is a file. */
  #files: FileResponder | null = null
  /** The Host that was accepted last, and the lines that describe the client to an app. */
  #accepted: ClientDescription | null = null

  constructor(connection: RequestConnection, state: SiteState) {
    this.#connection = connection
    this.#writer = connection.writer
    this.#state = state
    this.#head = new RequestHead(state.memory.fields)
    this.#exchange = new Exchange(this, state)
  }

  // For the connection.

  /**
   * Parses the head of the next request, and the part of its body that arrived with it.
   *
   * @param bytes with the head from `start` to `end`
   * @returns why the request is refused, or null
   */
  parse(bytes: Buffer, start: number, end: number): Refusal | null {
    const refusal = this.#head.parse(bytes, start, end) ?? this.#checkHost()
    if (refusal !== null) return refusal
    this.#body.begin(this.#head.framing, this.#head.length)
    const bodyEnd = this.#body.consume(bytes, end, bytes.length)
    if (bodyEnd === -1) return BAD_BODY
    this.#bytes = bytes
    this.#bodyEnd = bodyEnd
    this.#keepAlive = this.#head.keepAlive
    return null
  }

  /** Sends the request that was parsed to the site's upstream. */
  begin(): void {
    this.#exchange.begin()
  }

  /** End of the request in the bytes that were parsed. */
  get end(): number {
    return this.#bodyEnd
  }

  /** Parses more of the body. Returns its end in these bytes, or -1 if they are malformed. */
  parseBody(bytes: Buffer): number {
    return this.#body.consume(bytes, 0, bytes.length)
  }

  /** Sends bytes of the body that were parsed, or of the tunnel, to the app. */
  sendOn(bytes: Buffer, to: number): void {
    this.#exchange.sendOn(bytes, 0, to)
  }

  /** Continues with the response, because the client accepts more. */
  drained(): void {
    this.#exchange.drained()
    this.#files?.drained()
  }

  /** Ends the request from the client's side. */
  abort(): void {
    this.#exchange.abort()
    this.#files?.cancel()
    this.#files = null
    this.#bytes = EMPTY
  }

  /** Whether the response has begun. */
  get isResponded(): boolean {
    return this.#exchange.responded
  }

  /** Whether no more bytes of the client are accepted at present. */
  get isFull(): boolean {
    return this.#exchange.full
  }

  /** Whether another request may follow on the connection. */
  get keepsAlive(): boolean {
    return this.#keepAlive && this.#body.done
  }

  // `Requester`, for the exchange.

  get method(): string {
    return this.#head.method
  }

  get hasBody(): boolean {
    return this.#head.framing !== 'none'
  }

  get isRepeatable(): boolean {
    return this.#head.repeatable
  }

  get canResend(): boolean {
    const { framing, start, end, length, upgrade } = this.#head
    if (!this.#keepAlive || upgrade) return false
    if (framing === 'length') return end - start + length <= MAX_RESENT_BYTES
    return this.#body.done && this.#bodyEnd - start <= MAX_RESENT_BYTES
  }

  get isComplete(): boolean {
    return this.#body.done
  }

  get isDisconnected(): boolean {
    return this.#connection.isClosed
  }

  /** HTTP/1.0 knows no chunks. */
  get unchunks(): boolean {
    return this.#head.minor === 0
  }

  get tunnel(): Tunnel | null {
    return this.#head.upgrade ? this : null
  }

  /** See `Requester.sendTo`. Needs one write if head and body fit into the scratch buffer. */
  sendTo(app: AppConnection): void {
    const { memory } = this.#state
    const { scratch } = memory
    const length = putRequestHead(memory, this.#bytes, this.#head, this.#accepted?.forwarded ?? EMPTY)
    const { end } = this.#head
    const arrived = this.#bodyEnd - end
    if (length + arrived <= scratch.length) {
      if (arrived > 0) this.#bytes.copy(scratch, length, end, this.#bodyEnd)
      app.send(scratch, 0, length + arrived, true)
    } else {
      app.send(scratch, 0, length, true)
      app.send(this.#bytes, end, this.#bodyEnd, false)
    }
  }

  adjustReading(): void {
    this.#connection.adjustReading()
  }

  /** Passes an interim response on. HTTP/1.0 knows none. */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void {
    if (this.unchunks) return
    if (head.altered) this.#writeHead(bytes, start, head, { close: false })
    else this.write(bytes, start, end)
  }

  /** See `Requester.respond`. Passes unaltered bytes on as they are, without a copy. */
  respond(
    bytes: Buffer,
    start: number,
    end: number,
    bodyEnd: number,
    head: ResponseHead,
    body: Body,
  ): boolean {
    if (body.framing === 'close') this.#keepAlive = false
    const unchunk = body.pieces !== null && body.framing === 'chunked'
    if (this.#keepAlive && !head.altered && !unchunk) return this.write(bytes, start, bodyEnd)
    const { memory } = this.#state
    const { scratch } = memory
    const length = putResponseHead(memory, bytes, start, head, { close: !this.#keepAlive, unchunk })
    if (unchunk || bodyEnd - end > scratch.length - length) {
      this.#writer.write(scratch, 0, length, true)
      return this.respondBody(bytes, end, bodyEnd, body)
    }
    bytes.copy(scratch, length, end, bodyEnd)
    return this.#writer.write(scratch, 0, length + bodyEnd - end, true)
  }

  respondBody(bytes: Buffer, from: number, to: number, { framing, pieces }: Body): boolean {
    if (pieces === null || framing !== 'chunked') return this.write(bytes, from, to)
    for (let at = 0; at < pieces.length; at += 2) {
      this.write(bytes, pieces[at] as number, pieces[at + 1] as number)
    }
    pieces.length = 0
    return this.#writer.empty
  }

  respondOwn(response: OwnResponse): void {
    if (!this.#body.done) this.#keepAlive = false
    const head = this.#bytes.toString('latin1', this.#head.start, this.#head.end)
    const bytes = ownBytes(response, head, this.#keepAlive, this.#state.date)
    this.write(bytes, 0, bytes.length)
  }

  serve(serve: ServeFiles): void {
    const request = new ParsedRequest(this.#bytes, this.#head)
    const { memory, date } = this.#state
    this.#files = new FileResponder({
      memory,
      date,
      keepAlive: this.keepsAlive,
      unchunks: this.unchunks,
      write: (bytes, from, to, mustCopy) => this.#writer.write(bytes, from, to, mustCopy),
      end: (keepAlive) => {
        this.#keepAlive = keepAlive
        this.#files = null
        this.#exchange.served()
      },
      fail: (error, begun) => {
        this.#files = null
        this.#exchange.serveFailed(error, begun)
      },
    })
    void this.#files.run(request, serve)
  }

  finish(): void {
    this.#bytes = EMPTY
    this.#connection.requestEnded()
  }

  cutOff(how: CutOff): void {
    this.#bytes = EMPTY
    this.#connection.cutOff(how)
  }

  // `Tunnel`, for the exchange.

  beginTunnel(bytes: Buffer, start: number, head: ResponseHead): Buffer | null {
    const ahead = this.#connection.becomeTunnel()
    this.#writeHead(bytes, start, head, { close: false, upgrade: true })
    return ahead
  }

  write(bytes: Buffer, from: number, to: number): boolean {
    return this.#writer.write(bytes, from, to, false)
  }

  #writeHead(
    bytes: Buffer,
    start: number,
    head: ResponseHead,
    changes: { close: boolean; upgrade?: boolean },
  ): void {
    const { memory } = this.#state
    const length = putResponseHead(memory, bytes, start, head, changes)
    this.#writer.write(memory.scratch, 0, length, true)
  }

  #checkHost(): Refusal | null {
    const { host } = this.#head
    if (this.#accepted?.host === host) return null
    const refusal = this.#state.checkHost(host)
    if (refusal === null) this.#accepted = this.#state.describeClient(this.#writer.duplex.remoteAddress, host)
    return refusal
  }
}
