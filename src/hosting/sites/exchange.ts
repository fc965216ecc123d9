import type { AppConnection, AppExchange, CutOff } from './app-connection.ts'
import type { AppPort } from './app-port.ts'
import type { Body } from './http1/body.ts'
import type { ResponseHead } from './http1/response-head.ts'
import { badGateway, FAILED, type OwnResponse, unavailable } from './own-response.ts'
import type { Requester } from './requester.ts'
import type { SiteState, WaitingRequest } from './site-state.ts'
import type { ServeFiles } from './upstream.ts'

/**
 * A request and its response. Sends the request to the site's upstream, or waits while that is not ready, and passes
 * the response on as it arrives. A connection has one exchange, which it uses for its requests one after the other.
 */
export class Exchange implements AppExchange, WaitingRequest {
  readonly #requester: Requester
  readonly #state: SiteState
  #app: AppConnection | null = null
  /** Whether the upstream is files. */
  #serving = false
  /** Whether the head was sent to an app. */
  #sent = false
  /**
   * Parts of the request's body that arrived before the head was sent: the client may send them before it is paused.
   */
  #held: Buffer[] = []
  /** Whether the request goes over `#own`, a connection that was used before, and may be sent again over a new one. */
  #isRisked = false
  /** Parts of the body of such a request that were sent after its head. */
  #sentParts: Buffer[] = []
  /** A connection of the last request's, which only requests of the same client may use. */
  #own: AppConnection | null = null
  #responseBegun = false
  #responseDone = false
  #release: (() => void) | null = null
  #waitTimer: Timer | null = null

  constructor(requester: Requester, state: SiteState) {
    this.#requester = requester
    this.#state = state
  }

  get method(): string {
    return this.#requester.method
  }

  get hasBody(): boolean {
    return this.#requester.hasBody
  }

  get unchunks(): boolean {
    return this.#requester.unchunks
  }

  get tunnels(): boolean {
    return this.#requester.tunnel !== null
  }

  /** Whether the response has begun. */
  get responded(): boolean {
    return this.#responseBegun
  }

  /** Whether no more bytes of the client are accepted at present. */
  get full(): boolean {
    if (this.#app !== null && this.#sent) return !this.#app.flushed
    return this.#release !== null && !this.#requester.isComplete && !this.#serving
  }

  /** Begins with the requester's next request. */
  begin(): void {
    this.#responseBegun = false
    this.#responseDone = false
    this.#release = this.#state.use()
    this.dispatch()
  }

  /** Sends the request to the site's current upstream. */
  dispatch(): void {
    const { upstream, port } = this.#state
    this.#sent = false
    if (upstream.kind === 'starting') this.#wait()
    else if (upstream.kind === 'files') this.#serve(upstream.serve)
    else if (upstream.kind === 'down') this.#respondOwn(unavailable(upstream.reason))
    else if (port !== null) {
      const idle = this.#requester.isRepeatable ? port.takeIdle() : this.#takeOwn(port)
      if (idle === null) {
        this.#app = port.connect(this)
        this.#requester.adjustReading()
      } else {
        idle.begin(this)
        this.connected(idle)
      }
    }
  }

  connected(app: AppConnection): void {
    this.#app = app
    this.#endWaiting()
    this.#sent = true
    this.#requester.sendTo(app)
    for (const bytes of this.#held.splice(0)) app.send(bytes, 0, bytes.length, false)
    if (!this.#requester.isComplete || !app.flushed) this.#requester.adjustReading()
  }

  refused(): void {
    this.#wait()
    this.#state.retrySoon()
  }

  /** Sends more of the request's body, or of a tunnel. */
  sendOn(bytes: Buffer, from: number, to: number): void {
    if (this.#sent) {
      if (this.#isRisked) this.#sentParts.push(bytes.subarray(from, to))
      this.#app?.send(bytes, from, to, false)
    } else if (!this.#serving) this.#held.push(bytes.subarray(from, to))
    if (this.#responseDone && this.#requester.isComplete) this.#finish()
  }

  /** Continues, because the client accepts more. */
  drained(): void {
    this.#app?.resume()
  }

  appDrained(): void {
    this.#requester.adjustReading()
  }

  /** Ends the exchange, because the client has disconnected or its bytes are refused. */
  abort(): void {
    this.#endWaiting()
    this.#app?.abandon()
    this.#app = null
    this.#own?.discard()
    this.#own = null
    this.#done()
  }

  detached(): void {
    this.#app = null
  }

  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void {
    this.#requester.interim(bytes, start, end, head)
  }

  response(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): void {
    this.#responseBegun = true
    if (!this.#requester.respond(bytes, start, end, bodyEnd, head, body)) this.#app?.pause()
  }

  responseBody(bytes: Buffer, from: number, to: number, body: Body): void {
    if (!this.#requester.respondBody(bytes, from, to, body)) this.#app?.pause()
  }

  responseEnded(reads: boolean): void {
    this.#responseDone = true
    if (this.#requester.isComplete || !reads) this.#finish()
  }

  becomeTunnel(bytes: Buffer, start: number, head: ResponseHead): void {
    this.#responseBegun = true
    const ahead = this.#requester.tunnel?.beginTunnel(bytes, start, head) ?? null
    if (ahead !== null) this.#app?.send(ahead, 0, ahead.length, false)
    this.#requester.adjustReading()
  }

  forward(bytes: Buffer, from: number, to: number): void {
    if (this.#requester.tunnel?.write(bytes, from, to) === false) this.#app?.pause()
  }

  tunnelEnded(): void {
    this.cutOff('end')
  }

  closedUnheard(isUnread: () => Promise<boolean>): void {
    if (this.#requester.isRepeatable) this.dispatch()
    else if (this.#isRisked) void this.#sendAgain(isUnread)
    else this.closedWithoutResponse()
  }

  closedWithoutResponse(): void {
    this.badResponse('it closed the connection before its answer was whole')
  }

  badResponse(fault: string): void {
    this.#respondOwn(badGateway(fault))
  }

  cutOff(how: CutOff): void {
    this.#done()
    this.#requester.cutOff(how)
  }

  /** Ends the exchange after files have responded. */
  served(): void {
    this.#finish()
  }

  /**
   * Reports that files could not respond.
   *
   * @param begun whether a part of the response was sent
   */
  serveFailed(error: unknown, begun: boolean): void {
    this.#state.reportFailure(error)
    if (begun) this.cutOff('reset')
    else this.#respondOwn(FAILED)
  }

  /**
   * Takes the connection that is kept for the client, for a request that must arrive only once. The app may be closing
   * the connection. So the request has to be one that can be sent again if the app has not read it.
   */
  #takeOwn(port: AppPort): AppConnection | null {
    const own = this.#own
    this.#own = null
    if (own === null || !this.#requester.isKept || !port.takeKept(own)) {
      own?.discard()
      return null
    }
    this.#isRisked = true
    return own
  }

  /** Sends the request over a new connection, if the app has read nothing of it from the one that it has closed. */
  async #sendAgain(isUnread: () => Promise<boolean>): Promise<void> {
    this.#sent = false
    this.#isRisked = false
    this.#held = this.#sentParts
    this.#sentParts = []
    const release = this.#release
    this.#requester.adjustReading()
    const isSafe = await isUnread()
    // The client may have disconnected meanwhile.
    if (this.#release === null || this.#release !== release) return
    if (isSafe) this.dispatch()
    else this.closedWithoutResponse()
  }

  #wait(): void {
    const state = this.#state
    this.#waitTimer ??= setTimeout(() => {
      this.#endWaiting()
      const { upstream } = state
      if (upstream.kind === 'starting' && upstream.late) this.#serve(upstream.late)
      else this.#respondOwn(unavailable(null))
    }, state.times.waitMs)
    state.waiting.add(this)
    this.#requester.adjustReading()
  }

  #endWaiting(): void {
    if (this.#waitTimer === null) return
    clearTimeout(this.#waitTimer)
    this.#waitTimer = null
    this.#state.waiting.delete(this)
  }

  #serve(serve: ServeFiles): void {
    this.#endWaiting()
    this.#serving = true
    this.#requester.adjustReading()
    this.#requester.serve(serve)
  }

  #respondOwn(response: OwnResponse): void {
    if (this.#requester.isDisconnected) return
    this.#endWaiting()
    this.#responseBegun = true
    this.#requester.respondOwn(response)
    this.#finish()
  }

  #finish(): void {
    const app = this.#app
    this.#app = null
    const { now } = this.#state
    if (app === null || this.#requester.isRepeatable || !this.#requester.isKept) app?.release(now)
    else if (app.keep(now)) this.#own = app
    this.#done()
    this.#requester.finish()
  }

  #done(): void {
    const release = this.#release
    this.#release = null
    this.#serving = false
    this.#isRisked = false
    if (this.#held.length > 0) this.#held = []
    if (this.#sentParts.length > 0) this.#sentParts = []
    release?.()
  }
}
