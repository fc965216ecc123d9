import { badAnswer, FAILED, type OwnAnswer, ownAnswer, unavailable } from './answers.ts'
import type { AppConnection } from './app-connection.ts'
import type { ClientConnection } from './client.ts'
import { FileAnswer, ParsedRequest } from './file-answer.ts'
import type { Body } from './http1/body.ts'
import type { ResponseHead } from './http1/response-head.ts'
import { putRequestHead, putResponseHead, scratch } from './http1/rewrite.ts'
import type { ServeFiles } from './upstream.ts'

const EMPTY = Buffer.alloc(0)

/**
 * A request and its answer: it goes to where the site points, waits where nothing answers there yet, and what
 * comes is passed on as it comes. Each connection has one, for one request after the other.
 */
export class Exchange {
  readonly #client: ClientConnection
  /** The request's head, and what came of its body with it. */
  #bytes: Buffer = EMPTY
  #bodyEnd = 0
  #app: AppConnection | null = null
  #files: FileAnswer | null = null
  /** The head has gone out to an app. */
  #sent = false
  /** What has come of the body since, before that: the client is paused, but may have been about to give more. */
  #held: Buffer[] = []
  #answerBegun = false
  #answerDone = false
  #keepAlive = true
  #release: (() => void) | null = null
  #patience: Timer | null = null

  constructor(client: ClientConnection) {
    this.#client = client
  }

  /** The method of the request, by which an answer may have no body. */
  get method(): string {
    return this.#client.head.method
  }

  /** Whether a WebSocket is asked for. */
  get upgrade(): boolean {
    return this.#client.head.upgrade
  }

  /** Whether the request has a body. */
  get hasBody(): boolean {
    return this.#client.head.framing !== 'none'
  }

  /** Whether the client takes no chunks. */
  get unchunks(): boolean {
    return this.#client.whole || this.#client.head.minor === 0
  }

  /** Whether the answer has begun. */
  get answered(): boolean {
    return this.#answerBegun
  }

  /** Whether what the client sends has nowhere to go just now. */
  get full(): boolean {
    if (this.#app !== null && this.#sent) return !this.#app.flushed
    return this.#release !== null && !this.#client.body.done && this.#files === null
  }

  /** Takes a request. @param bytes that the client's head was parsed from, with its body up to `bodyEnd` */
  begin(bytes: Buffer, bodyEnd: number): void {
    this.#bytes = bytes
    this.#bodyEnd = bodyEnd
    this.#answerBegun = false
    this.#answerDone = false
    this.#keepAlive = this.#client.head.keepAlive && !this.#client.whole
    this.#release = this.#client.traffic.use()
    this.dispatch()
  }

  /** Sends the request to where the site points now. */
  dispatch(): void {
    const { upstream, port } = this.#client.traffic
    this.#sent = false
    if (upstream.kind === 'starting') this.#wait()
    else if (upstream.kind === 'files') this.#serve(upstream.serve)
    else if (upstream.kind === 'down') this.#answerOwn(unavailable(upstream.reason))
    else if (port !== null) {
      // Who may not send a request twice does not risk a connection that the app may be closing.
      const idle = this.#client.head.repeatable ? port.takeIdle() : null
      if (idle === null) {
        this.#app = port.connect(this)
        this.#client.adjust()
      } else {
        idle.begin(this)
        this.connected(idle)
      }
    }
  }

  /** A connection to the app is there. */
  connected(app: AppConnection): void {
    const { head, body, told } = this.#client
    this.#app = app
    this.#endWaiting()
    this.#sent = true
    const length = putRequestHead(this.#bytes, head, told)
    const sent = this.#bodyEnd - head.end
    if (length + sent <= scratch.length) {
      if (sent > 0) this.#bytes.copy(scratch, length, head.end, this.#bodyEnd)
      app.send(scratch, 0, length + sent, true)
    } else {
      app.send(scratch, 0, length, true)
      app.send(this.#bytes, head.end, this.#bodyEnd, false)
    }
    for (const bytes of this.#held.splice(0)) app.send(bytes, 0, bytes.length, false)
    if (!body.done || !app.flushed) this.#client.adjust()
  }

  /** The app's port takes no connection: it may be back soon. */
  refused(): void {
    this.#wait()
    this.#client.traffic.retrySoon()
  }

  /** Sends more of the request's body, or of a tunnel. */
  sendOn(bytes: Buffer, from: number, to: number): void {
    if (this.#sent) this.#app?.send(bytes, from, to, false)
    else if (this.#files === null) this.#held.push(bytes.subarray(from, to))
    if (this.#answerDone && this.#client.body.done) this.#finish()
  }

  /** The client takes more. */
  drained(): void {
    this.#app?.resume()
    this.#files?.drained()
  }

  /** The app takes more. */
  appDrained(): void {
    this.#client.adjust()
  }

  /** The client has gone, or what it sends is refused. */
  abort(): void {
    this.#endWaiting()
    this.#app?.abandon()
    this.#app = null
    this.#files?.cancel()
    this.#files = null
    this.#done()
  }

  /** The connection to the app is gone, for this request at least. */
  detached(): void {
    this.#app = null
  }

  /** An answer before the answer (RFC 9110, 15.2); HTTP/1.0 knows none. */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void {
    if (this.unchunks) return
    if (head.altered) {
      this.forward(scratch, 0, putResponseHead(bytes, start, head, { close: false }), true)
    } else this.forward(bytes, start, end, false)
  }

  /** The head of the answer, and what came of its body with it. */
  answer(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): void {
    this.#answerBegun = true
    if (body.framing === 'close') this.#keepAlive = false
    const unchunk = body.pieces !== null && body.framing === 'chunked'
    if (this.#keepAlive && !head.altered && !unchunk) {
      this.forward(bytes, start, bodyEnd, false)
      return
    }
    const length = putResponseHead(bytes, start, head, { close: !this.#keepAlive, unchunk })
    if (unchunk || bodyEnd - end > scratch.length - length) {
      this.forward(scratch, 0, length, true)
      this.answerBody(bytes, end, bodyEnd, body)
    } else {
      bytes.copy(scratch, length, end, bodyEnd)
      this.forward(scratch, 0, length + bodyEnd - end, true)
    }
  }

  /** More of the answer's body. */
  answerBody(bytes: Buffer, from: number, to: number, { framing, pieces }: Body): void {
    if (pieces === null || framing !== 'chunked') this.forward(bytes, from, to, false)
    else {
      for (let at = 0; at < pieces.length; at += 2)
        this.forward(bytes, pieces[at] as number, pieces[at + 1] as number, false)
      pieces.length = 0
    }
  }

  /** Passes bytes on to the client; the app waits while it does not take them. */
  forward(bytes: Uint8Array, from: number, to: number, shared: boolean): void {
    if (!this.#client.outlet.write(bytes, from, to, shared)) this.#app?.pause()
  }

  /** The answer is whole. @param reads whether the app still reads the request */
  answerEnded(reads: boolean): void {
    this.#answerDone = true
    if (this.#client.body.done || !reads) this.#finish()
  }

  /** The app takes the WebSocket: bytes pass both ways from now on. */
  becomeTunnel(bytes: Buffer, start: number, head: ResponseHead): void {
    this.#answerBegun = true
    const ahead = this.#client.becomeTunnel()
    this.forward(scratch, 0, putResponseHead(bytes, start, head, { close: false, upgrade: true }), true)
    if (ahead !== null) this.#app?.send(ahead, 0, ahead.length, false)
    this.#client.adjust()
  }

  /** The app has ended the tunnel. */
  tunnelEnded(): void {
    this.#done()
    this.#client.cutOff(false)
  }

  /** The app has closed the connection without an answer. @param unheard whether not a byte came on a connection used before */
  unanswered(unheard: boolean): void {
    if (unheard && this.#client.head.repeatable) this.dispatch()
    else this.badAnswer('it closed the connection before its answer was whole')
  }

  /** The app's answer is none. */
  badAnswer(fault: string): void {
    this.#answerOwn(badAnswer(fault))
  }

  /** The answer ends in its midst. @param visibly see `ClientConnection.cutOff` */
  cutOff(visibly: boolean): void {
    this.#done()
    this.#client.cutOff(visibly)
  }

  #wait(): void {
    const { traffic } = this.#client
    this.#patience ??= setTimeout(() => {
      this.#endWaiting()
      this.#answerOwn(unavailable(null))
    }, traffic.times.waitMs)
    traffic.waiting.add(this)
    this.#client.adjust()
  }

  #endWaiting(): void {
    if (this.#patience === null) return
    clearTimeout(this.#patience)
    this.#patience = null
    this.#client.traffic.waiting.delete(this)
  }

  #serve(serve: ServeFiles): void {
    this.#endWaiting()
    const request = new ParsedRequest(this.#bytes, this.#client.head)
    this.#files = new FileAnswer({
      keepAlive: this.#keepAlive && this.#client.body.done,
      unchunks: this.unchunks,
      write: (bytes, from, to, shared) => this.#client.outlet.write(bytes, from, to, shared),
      end: (keepAlive) => {
        this.#keepAlive = keepAlive
        this.#finish()
      },
      fail: (error, begun) => {
        this.#client.traffic.failed(error)
        if (begun) this.cutOff(true)
        else this.#answerOwn(FAILED)
      },
    })
    this.#client.adjust()
    void this.#files.run(request, serve)
  }

  #answerOwn(answer: OwnAnswer): void {
    const { head, body, gone, outlet } = this.#client
    if (gone) return
    this.#endWaiting()
    if (!body.done) this.#keepAlive = false
    const bytes = ownAnswer(answer, this.#bytes.toString('latin1', head.start, head.end), this.#keepAlive)
    this.#answerBegun = true
    outlet.write(bytes, 0, bytes.length, false)
    this.#finish()
  }

  #finish(): void {
    const app = this.#app
    this.#app = null
    this.#files = null
    app?.release(this.#client.traffic.now)
    this.#done()
    this.#client.finish(this.#keepAlive)
  }

  #done(): void {
    const release = this.#release
    this.#release = null
    this.#bytes = EMPTY
    if (this.#held.length > 0) this.#held = []
    release?.()
  }
}
