import type { AppConnection, AppExchange, CutOff } from './app-connection.ts'
import type { AppPort } from './app-port.ts'
import type { Body } from './http1/body.ts'
import type { ResponseHead } from './http1/response-head.ts'
import {
  badGateway,
  crashedMeanwhile,
  FAILED,
  type OwnResponse,
  unavailable,
  unreachable,
} from './own-response.ts'
import type { Requester } from './requester.ts'
import type { SiteState, WaitingRequest } from './site-state.ts'
import type { ServeFiles } from './upstream.ts'

/** What becomes of the request. Phases are plain strings: a request allocates nothing for them. */
type Phase =
  /** No request is under way. */
  | 'idle'
  /** Waits until the upstream is ready. `#parts` holds what arrives of the body, as in the next two phases. */
  | 'waiting'
  /** Waits for a new connection to the app, `#app`. */
  | 'connecting'
  /** Waits to hear why the app has closed the connection, or whether it has read anything of the request from it. */
  | 'checking'
  /** The head was sent to the app. What arrives of the body is passed on. */
  | 'sent'
  /**
   * The same, over a connection that was used before. If the app closes that unread, the request is sent again, so
   * `#parts` also keeps what was passed on.
   */
  | 'resendable'
  /** Files respond. The body is dropped. */
  | 'files'

/**
 * A request and its response. Sends the request to the site's upstream, or waits while that is not ready, and passes
 * the response on as it arrives. A connection has one exchange, which it uses for its requests one after the other.
 *
 *     idle ── begin ─► dispatch
 *     dispatch ── the upstream starts ─► waiting ── it is ready ─► dispatch
 *     dispatch ── the upstream is files ─► files
 *     dispatch ── the app has an idle connection ─► sent
 *     dispatch ── one is reserved for the client ─► resendable
 *     dispatch ── none is free ─► connecting ── open ─► sent
 *                                            ── refused ─► waiting
 *     sent ── closed before any response, and the request may be repeated (and the app has not ended) ─► dispatch
 *     resendable ── closed before any response ─► checking ── nothing was read ─► dispatch
 *     sent ── closed before a head, for good ─► checking ── the reason is known, or does not come ─► idle
 *     any ── request and response are complete, cut off, the client has disconnected ─► idle
 */
export class Exchange implements AppExchange, WaitingRequest {
  readonly #requester: Requester
  readonly #state: SiteState
  #phase: Phase = 'idle'
  #app: AppConnection | null = null
  /** Parts of the request's body that are still to be sent, or may have to be sent again. */
  #parts: Buffer[] = []
  /** The connection of the last request, if it is reserved for the client's next one. */
  #reserved: AppConnection | null = null
  /** The port of an app that the request was sent to last. */
  #port: AppPort | null = null
  /** The same, if the app has closed that connection without a response. */
  #closedBy: AppPort | null = null
  /** How much of the response the client was sent. The request's body may still arrive when it is done. */
  #response: 'none' | 'begun' | 'done' = 'none'
  /** Why the connection to the app could not be opened at last. */
  #refusal: string | null = null
  /** Number of the request, to tell whether it is still the same one after a wait. */
  #serial = 0
  /** Whether the request counts as a use of the site. */
  #isUse = false
  /** Limits the time before the request is sent, from the first wait on. */
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
    return this.#response !== 'none'
  }

  /** Whether no more bytes of the client are accepted at present. */
  get full(): boolean {
    if (this.#phase === 'idle' || this.#phase === 'files') return false
    if (this.#app !== null && this.#isSent) return !this.#app.flushed
    return !this.#requester.isComplete
  }

  /** Begins with the requester's next request. */
  begin(): void {
    this.#response = 'none'
    this.#closedBy = null
    this.#refusal = null
    this.#serial += 1
    this.#isUse = true
    this.#state.beginUse()
    this.dispatch()
  }

  /** Sends the request to the site's current upstream. */
  dispatch(): void {
    const { upstream, port } = this.#state
    if (upstream.kind === 'starting') this.#wait()
    else if (upstream.kind === 'files') this.#serve(upstream.serve)
    else if (upstream.kind === 'down') this.#respondOwn(unavailable(upstream.reason))
    else if (port !== null) this.#sendTo(port)
  }

  connected(app: AppConnection): void {
    this.#send(app, 'sent')
  }

  refused(reason: string): void {
    this.#refusal = reason
    // It had not closed an idle connection, but ended, maybe by the request: the next process is spared it.
    if (this.#closedBy !== null && this.#closedBy === this.#port) {
      this.closedWithoutResponse()
      return
    }
    this.#wait()
    this.#state.retrySoon()
  }

  /** Sends more of the request's body, or of a tunnel. */
  sendOn(bytes: Buffer, from: number, to: number): void {
    if (this.#phase === 'idle') return
    if (this.#phase !== 'sent' && this.#phase !== 'files') this.#parts.push(bytes.subarray(from, to))
    if (this.#isSent) this.#app?.send(bytes, from, to, false)
    if (this.#response === 'done' && this.#requester.isComplete) this.#finish()
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
    this.#reserved?.discard()
    this.#reserved = null
    this.#done()
  }

  detached(): void {
    this.#app = null
  }

  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void {
    this.#requester.interim(bytes, start, end, head)
  }

  response(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): void {
    this.#response = 'begun'
    if (!this.#requester.respond(bytes, start, end, bodyEnd, head, body)) this.#app?.pause()
  }

  responseBody(bytes: Buffer, from: number, to: number, body: Body): void {
    if (!this.#requester.respondBody(bytes, from, to, body)) this.#app?.pause()
  }

  responseEnded(reads: boolean): void {
    this.#response = 'done'
    if (this.#requester.isComplete || !reads) this.#finish()
  }

  becomeTunnel(bytes: Buffer, start: number, head: ResponseHead): void {
    this.#response = 'begun'
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
    const { upstream } = this.#state
    if (this.#requester.isRepeatable && (upstream.kind !== 'starting' || !upstream.hasCrashed)) {
      // One that is replaced ends by plan.
      if (upstream.kind === 'app') this.#closedBy = this.#port
      this.dispatch()
    } else if (this.#phase === 'resendable') void this.#sendAgain(isUnread)
    else this.closedWithoutResponse()
  }

  closedWithoutResponse(): void {
    void this.#explainClose()
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

  /** Whether the head was sent to an app. */
  get #isSent(): boolean {
    return this.#phase === 'sent' || this.#phase === 'resendable'
  }

  /** Sends the request over a free connection, or over a new one as soon as that is open. */
  #sendTo(port: AppPort): void {
    const { isRepeatable } = this.#requester
    this.#port = port
    const free = isRepeatable ? port.takeIdle() : this.#takeReserved(port)
    if (free === null) {
      this.#phase = 'connecting'
      this.#app = port.connect(this)
      this.#requester.adjustReading()
    } else {
      free.begin(this)
      this.#send(free, isRepeatable ? 'sent' : 'resendable')
    }
  }

  /**
   * Takes the connection that is reserved for the client, for a request that must arrive only once. The app may be
   * closing the connection. So the request has to be one that can be sent again if the app has not read it.
   */
  #takeReserved(port: AppPort): AppConnection | null {
    const reserved = this.#reserved
    this.#reserved = null
    if (reserved !== null && this.#requester.canResend && port.takeReserved(reserved)) return reserved
    reserved?.discard()
    return null
  }

  #send(app: AppConnection, phase: 'sent' | 'resendable'): void {
    this.#app = app
    this.#endWaiting()
    this.#phase = phase
    this.#requester.sendTo(app)
    for (const bytes of this.#parts) app.send(bytes, 0, bytes.length, false)
    if (phase === 'sent') this.#dropParts()
    if (!this.#requester.isComplete || !app.flushed) this.#requester.adjustReading()
  }

  /** Sends the request over a new connection, if the app has read nothing of it from the one that it has closed. */
  async #sendAgain(isUnread: () => Promise<boolean>): Promise<void> {
    this.#phase = 'checking'
    const serial = this.#serial
    this.#requester.adjustReading()
    const isSafe = await isUnread()
    // The client may have disconnected meanwhile, and another request begun.
    if (this.#phase !== 'checking' || this.#serial !== serial) return
    if (isSafe) this.dispatch()
    else this.closedWithoutResponse()
  }

  /** Responds for an app that has closed the connection, maybe because its process has ended. */
  async #explainClose(): Promise<void> {
    this.#endWaiting()
    this.#phase = 'checking'
    const serial = this.#serial
    this.#requester.adjustReading()
    const crash = await this.#state.crash()
    if (this.#phase !== 'checking' || this.#serial !== serial) return
    if (crash !== null) this.#respondOwn(crashedMeanwhile(crash))
    else this.badResponse('it closed the connection before its response was complete')
  }

  #wait(): void {
    const state = this.#state
    this.#waitTimer ??= setTimeout(() => {
      this.#endWaiting()
      const { upstream } = state
      if (upstream.kind === 'starting' && upstream.late) this.#serve(upstream.late)
      else this.#respondOwn(unreachable(upstream.kind === 'app' ? this.#refusal : null))
    }, state.times.waitMs)
    this.#phase = 'waiting'
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
    // The time to wait may end while a connection is being opened.
    this.#app?.abandon()
    this.#app = null
    this.#phase = 'files'
    this.#requester.adjustReading()
    this.#requester.serve(serve)
  }

  #respondOwn(response: OwnResponse): void {
    if (this.#requester.isDisconnected) return
    this.#endWaiting()
    this.#response = 'begun'
    this.#requester.respondOwn(response)
    this.#finish()
  }

  #finish(): void {
    const app = this.#app
    this.#app = null
    const { now } = this.#state
    if (app === null || this.#requester.isRepeatable || !this.#requester.canResend) app?.release(now)
    else if (app.reserve(now)) this.#reserved = app
    this.#done()
    this.#requester.finish()
  }

  #done(): void {
    this.#phase = 'idle'
    this.#dropParts()
    if (!this.#isUse) return
    this.#isUse = false
    this.#state.endUse()
  }

  #dropParts(): void {
    if (this.#parts.length > 0) this.#parts = []
  }
}
