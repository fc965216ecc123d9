import type { AppConnection } from './app-connection.ts'
import { BufferedWriter, type Duplex } from './buffered-writer.ts'
import { Exchange } from './exchange.ts'
import { FileResponder, ParsedRequest } from './file-responder.ts'
import { Body } from './http1/body.ts'
import { findHeadEnd, HEAD_LIMIT, hasBareLf, type Refusal } from './http1/head.ts'
import { RequestHead } from './http1/request-head.ts'
import type { ResponseHead } from './http1/response-head.ts'
import { putRequestHead, putResponseHead } from './http1/rewrite.ts'
import { type OwnResponse, ownBytes, refusalResponse } from './own-response.ts'
import type { Requester, Tunnel } from './requester.ts'
import type { SiteClient, SiteState } from './site-state.ts'
import type { ServeFiles } from './upstream.ts'

const BAD_BODY: Refusal = { status: 400, message: 'The body is not in chunks as its header says.' }

const EMPTY = Buffer.alloc(0)

/**
 * How a connection ends: at once, or after reading on for a while. Unread data at the close would destroy the last
 * response.
 */
type Ending = 'end' | 'linger'

/**
 * A client's connection to a site's own port. It reads one request after the other and responds to each through its
 * exchange. It reads nothing as long as earlier bytes wait.
 */
export class ClientConnection implements Requester, SiteClient, Tunnel {
  readonly #writer: BufferedWriter
  readonly #state: SiteState
  /** The current request, or the last one. */
  readonly #head: RequestHead
  readonly #body = new Body()
  readonly #exchange: Exchange
  /** The bytes of the request's head and of the part of its body that arrived with it, up to `#bodyEnd`. */
  #bytes: Buffer = EMPTY
  #bodyEnd = 0
  /** Lines that describe this client to an app. */
  #forwarded: Uint8Array = EMPTY
  #files: FileResponder | null = null
  #keepAlive = true
  #phase: 'head' | 'exchange' | 'tunnel' | 'closing' | 'closed' = 'head'
  /** Start of the wait for a head or for the client's end, by the gateway's clock. */
  #waitingSince: number
  /** Bytes of an incomplete head, or bytes after the current request. */
  #unparsed: Buffer | null = null
  #paused = false
  /** The Host that was accepted last. */
  #checkedHost: string | null | undefined
  #ending: Ending = 'end'

  constructor(duplex: Duplex, state: SiteState) {
    this.#writer = new BufferedWriter(duplex)
    this.#state = state
    this.#head = new RequestHead(state.memory.fields)
    this.#exchange = new Exchange(this, state)
    state.addClient(this)
    this.#waitingSince = state.now
  }

  // Events of the socket.

  receive(chunk: Buffer): void {
    switch (this.#phase) {
      case 'head': {
        const ahead = this.#unparsed
        this.#unparsed = null
        if (ahead === null) this.#takeHead(chunk)
        else this.#takeHead(Buffer.concat([ahead, chunk]), false)
        break
      }
      case 'exchange':
        if (this.#body.done) this.#stash(chunk)
        else this.#takeBody(chunk)
        break
      case 'tunnel':
        this.#exchange.sendOn(chunk, 0, chunk.length)
        this.adjust()
        break
    }
  }

  drain(): void {
    if (!this.#writer.flush()) return
    this.#exchange.drained()
    this.#files?.drained()
    if (this.#phase === 'closing') this.#close(this.#ending)
    else this.#proceed()
  }

  closed(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#state.clients.delete(this)
    this.#abort()
  }

  // `SiteClient`.

  sweep(headBefore: number, lingerBefore: number): void {
    if (this.#phase === 'closing') {
      if (this.#waitingSince < (this.#writer.empty ? lingerBefore : headBefore))
        this.#writer.duplex.terminate()
    } else if (this.#phase === 'head' && this.#waitingSince < headBefore && this.#writer.empty) {
      if (this.#unparsed === null) this.#close('end')
      else this.#refuse({ status: 408, message: 'The head of the request did not come in time.' })
    }
  }

  terminate(): void {
    this.closed()
    this.#writer.duplex.terminate()
  }

  // `Requester`.

  get method(): string {
    return this.#head.method
  }

  get hasBody(): boolean {
    return this.#head.framing !== 'none'
  }

  get isRepeatable(): boolean {
    return this.#head.repeatable
  }

  get isComplete(): boolean {
    return this.#body.done
  }

  get isDisconnected(): boolean {
    return this.#phase === 'closed'
  }

  /** HTTP/1.0 knows no chunks. */
  get unchunks(): boolean {
    return this.#head.minor === 0
  }

  get tunnel(): Tunnel | null {
    return this.#head.upgrade ? this : null
  }

  sendTo(app: AppConnection): void {
    const { memory } = this.#state
    const { scratch } = memory
    const length = putRequestHead(memory, this.#bytes, this.#head, this.#forwarded)
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

  adjust(): void {
    const pause = (this.#unparsed !== null && this.#phase !== 'head') || this.#exchange.full
    if (pause === this.#paused) return
    this.#paused = pause
    if (pause) this.#writer.duplex.pause()
    else this.#writer.duplex.resume()
  }

  /** Passes an interim response on. HTTP/1.0 knows none. */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void {
    if (this.unchunks) return
    if (head.altered) this.#writeHead(bytes, start, head, { close: false })
    else this.write(bytes, start, end)
  }

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
      keepAlive: this.#keepAlive && this.#body.done,
      unchunks: this.unchunks,
      write: (bytes, from, to, shared) => this.#writer.write(bytes, from, to, shared),
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
    if (this.#phase === 'closed') return
    if (!this.#keepAlive || !this.#body.done || this.#state.closing) {
      this.#close(this.#body.done && this.#unparsed === null ? 'end' : 'linger')
      return
    }
    this.#phase = 'head'
    this.#waitingSince = this.#state.now
    if (this.#unparsed !== null || this.#paused) this.#proceed()
  }

  cutOff(visibly: boolean): void {
    this.#bytes = EMPTY
    if (visibly) this.#writer.duplex.terminate()
    else this.#close('end')
  }

  begin(bytes: Buffer, start: number, head: ResponseHead): Buffer | null {
    this.#phase = 'tunnel'
    const ahead = this.#unparsed
    this.#unparsed = null
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
    this.#writer.write(memory.scratch, 0, putResponseHead(memory, bytes, start, head, changes), true)
  }

  #takeHead(bytes: Buffer, first = true): void {
    let start = 0
    // Empty lines before a request are ignored (RFC 9112, section 2.2).
    while (start < 4 && bytes[start] === 13 && bytes[start + 1] === 10) start += 2
    const end = findHeadEnd(bytes, start)
    if (end === -1 || end - start > HEAD_LIMIT) {
      this.#awaitHead(bytes, start, first)
      return
    }
    const refusal = this.#head.parse(bytes, start, end) ?? this.#checkHost()
    if (refusal !== null) {
      this.#refuse(refusal)
      return
    }
    this.#body.begin(this.#head.framing, this.#head.length)
    const bodyEnd = this.#body.consume(bytes, end, bytes.length)
    if (bodyEnd === -1) {
      this.#refuse(BAD_BODY)
      return
    }
    this.#phase = 'exchange'
    if (this.#body.done && bodyEnd < bytes.length) this.#stash(bytes.subarray(bodyEnd))
    this.#bytes = bytes
    this.#bodyEnd = bodyEnd
    this.#keepAlive = this.#head.keepAlive
    this.#exchange.begin()
  }

  #awaitHead(bytes: Buffer, start: number, first: boolean): void {
    if (bytes.length - start > HEAD_LIMIT) {
      this.#refuse({ status: 431, message: `The head of a request may have ${HEAD_LIMIT} bytes.` })
    } else if (hasBareLf(bytes)) {
      this.#refuse({ status: 400, message: 'A line ends without its CR.' })
    } else if (bytes.length > 0) {
      // The time that the connection was idle before does not count.
      if (first) this.#waitingSince = this.#state.now
      this.#unparsed = bytes
    }
  }

  #checkHost(): Refusal | null {
    const { host } = this.#head
    if (this.#checkedHost === host) return null
    const refusal = this.#state.checkHost(host)
    if (refusal !== null) return refusal
    this.#checkedHost = host
    this.#forwarded = this.#state.forwardedLines(this.#writer.duplex.remoteAddress, host)
    return null
  }

  #takeBody(chunk: Buffer): void {
    const end = this.#body.consume(chunk, 0, chunk.length)
    if (end === -1) {
      const { responded } = this.#exchange
      this.#abort()
      if (responded) this.cutOff(true)
      else this.#refuse(BAD_BODY)
      return
    }
    if (this.#body.done && end < chunk.length) this.#stash(chunk.subarray(end))
    this.#exchange.sendOn(chunk, 0, end)
    this.adjust()
  }

  /** Keeps bytes until the current request is over. */
  #stash(chunk: Buffer): void {
    this.#unparsed = this.#unparsed === null ? chunk : Buffer.concat([this.#unparsed, chunk])
    this.adjust()
  }

  #refuse(refusal: Refusal): void {
    const bytes = ownBytes(refusalResponse(refusal), null, false, this.#state.date)
    this.write(bytes, 0, bytes.length)
    this.#close('linger')
  }

  /** Continues with the bytes that the client has sent ahead. */
  #proceed(): void {
    if (this.#unparsed === null || this.#phase !== 'head') {
      this.adjust()
      return
    }
    // Deferred: for many pipelined requests, a direct call would deepen the stack with each.
    queueMicrotask(() => {
      const ahead = this.#unparsed
      if (ahead === null || this.#phase !== 'head' || !this.#writer.empty) return
      this.#unparsed = null
      this.#takeHead(ahead)
      this.adjust()
    })
  }

  /** Ends the exchange from the client's side. */
  #abort(): void {
    this.#exchange.abort()
    this.#files?.cancel()
    this.#files = null
    this.#bytes = EMPTY
  }

  #close(how: Ending): void {
    this.#ending = how
    this.#phase = 'closing'
    this.#waitingSince = this.#state.now
    if (!this.#writer.empty) return
    this.#unparsed = null
    if (how === 'end') this.#writer.duplex.end()
    else {
      this.#writer.duplex.shutdown()
      this.adjust()
    }
  }
}
