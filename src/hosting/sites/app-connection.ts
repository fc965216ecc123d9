import type { DialedConnection, Dialer, DialHandlers, LoopbackHost } from '../../compute/sandbox.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { BufferedWriter } from './buffered-writer.ts'
import { Body } from './http1/body.ts'
import { findHeadEnd, HEAD_LIMIT } from './http1/head.ts'
import type { HeadMemory } from './http1/head-memory.ts'
import { faultOfPartial, ResponseHead } from './http1/response-head.ts'

/** Most bytes of the interim responses to one request: they are passed on even if the client does not read. */
const MAX_INTERIM_BYTES = 64 * 1024

/** The connections of an app. */
export interface ConnectionPool {
  readonly server: Dialer
  readonly port: number
  readonly host: LoopbackHost
  readonly memory: HeadMemory
  /**
   * Takes a connection back after a request.
   *
   * @param reusable whether the connection may carry another request
   * @returns whether the connection stays open
   */
  release(connection: AppConnection, reusable: boolean): boolean
  /**
   * Takes a connection back after a request, and reserves it for the next one of the same client.
   *
   * @returns whether the connection stays open
   */
  reserve(connection: AppConnection): boolean
  /** Removes an idle connection that the app has closed. */
  forget(connection: AppConnection): void
}

/**
 * How a response that cannot be completed ends: `reset` is a failure that the client sees, for when it would take a
 * plain `end` for a complete response.
 */
export type CutOff = 'end' | 'reset'

/** The app's side of an exchange. */
export interface AppExchange {
  /** The request's method, which decides whether the response may have a body. */
  readonly method: string
  /** Whether the request has a body. */
  readonly hasBody: boolean
  /** Whether the response's content is sent without its chunks. */
  readonly unchunks: boolean
  /** Whether the connection may become a tunnel. */
  readonly tunnels: boolean
  /** Called when the connection is open. */
  connected(app: AppConnection): void
  /** Called when the connection to the app's port cannot be opened. @param reason why, a sentence */
  refused(reason: string): void
  /** Called when the app accepts more. */
  appDrained(): void
  /** Called with an interim (1xx) response (RFC 9110, section 15.2). */
  interim(bytes: Buffer, start: number, end: number, head: ResponseHead): void
  /** Called with the head of the response, and the part of its body that arrived with it. */
  response(bytes: Buffer, start: number, end: number, bodyEnd: number, head: ResponseHead, body: Body): void
  /** Called with more of the response's body. */
  responseBody(bytes: Buffer, from: number, to: number, body: Body): void
  /**
   * Called when the response is complete.
   *
   * @param reads whether the app still reads the request
   */
  responseEnded(reads: boolean): void
  /** Called when the app has accepted the tunnel. From then on bytes pass both ways. */
  becomeTunnel(bytes: Buffer, start: number, head: ResponseHead): void
  /** Called with bytes of the tunnel. */
  forward(bytes: Buffer, from: number, to: number): void
  /** Called when the app has ended the tunnel. */
  tunnelEnded(): void
  /**
   * Called when the app has closed a reused connection before any byte of a response. It may have been closing the
   * idle connection already when the request was sent.
   *
   * @param isUnread resolves to whether it is certain that the app has read nothing of the request; to be called at once
   */
  closedUnheard(isUnread: () => Promise<boolean>): void
  /** Called when the app has closed the connection before the head of a response was complete. */
  closedWithoutResponse(): void
  /** Called with the defect of an invalid response. */
  badResponse(fault: string): void
  /** Called when the response breaks off. */
  cutOff(how: CutOff): void
  /** Called when the connection leaves the exchange, which continues without it. */
  detached(): void
}

/** A connection to an app. It carries one request at a time and passes the response to its exchange. */
export class AppConnection implements DialHandlers {
  readonly head: ResponseHead
  readonly #body = new Body()
  readonly #pool: ConnectionPool
  #exchange: AppExchange | null
  #connection: DialedConnection | null = null
  #writer: BufferedWriter<DialedConnection> | null = null
  #phase: 'head' | 'body' | 'responded' | 'tunnel' = 'head'
  /** Bytes of an incomplete head. */
  #partial: Buffer | null = null
  /** Bytes of interim responses to the request. */
  #interimBytes = 0
  /** Whether bytes have arrived since the request was sent. */
  #hasReceived = false
  /** Whether it may carry another request, of any client. */
  #reusable = false
  /** Whether it may carry another request of the same client. */
  #reservable = false
  #hasCarriedBody = false
  #paused = false
  /** Whether to close as soon as the writer is empty. */
  #ending = false
  /** Whether it has carried a request before. The app may be closing such a connection. */
  #isReused = false
  /** Time since which no request is under way, by the gateway's clock. */
  idleSince = 0

  constructor(pool: ConnectionPool, exchange: AppExchange) {
    this.#pool = pool
    this.#exchange = exchange
    this.head = new ResponseHead(pool.memory.fields)
    pool.server.dial(pool.port, pool.host, this).catch((error) => this.#refused(messageOf(error)))
  }

  /** Whether all bytes have been written to the socket. */
  get flushed(): boolean {
    return this.#writer?.empty ?? true
  }

  /** Begins with the next request. */
  begin(exchange: AppExchange): void {
    this.#exchange = exchange
    this.#phase = 'head'
    this.#hasReceived = false
    this.#reusable = false
    this.#reservable = false
    this.#partial = null
    this.#interimBytes = 0
  }

  /** Sends bytes, see `BufferedWriter.write`. */
  send(bytes: Uint8Array, from: number, to: number, mustCopy: boolean): boolean {
    return this.#writer?.write(bytes, from, to, mustCopy) ?? true
  }

  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.#connection?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#connection?.resume()
  }

  /**
   * Ends the request. The connection stays open for one of any client, or is closed.
   *
   * @param now by the gateway's clock
   */
  release(now: number): void {
    this.#rest(now)
    if (!this.#pool.release(this, this.#reusable && this.flushed)) this.close()
  }

  /**
   * Ends the request. The connection is reserved for another of the same client, if it can be found out what the app
   * has read when it closes the connection; else it is released.
   *
   * @param now by the gateway's clock
   * @returns whether it is reserved
   */
  reserve(now: number): boolean {
    if (!this.#reservable || !this.flushed || this.#connection?.watchReading?.() !== true) {
      this.release(now)
      return false
    }
    this.#rest(now)
    const isReserved = this.#pool.reserve(this)
    if (!isReserved) this.close()
    return isReserved
  }

  /** Closes the connection, which no request uses. */
  discard(): void {
    this.#pool.forget(this)
    this.close()
  }

  /** Ends the request, because the client has disconnected, and closes the connection. */
  abandon(): void {
    const tunnel = this.#phase === 'tunnel'
    this.#exchange = null
    this.#pool.release(this, false)
    this.resume()
    if (!tunnel || this.flushed) this.close()
    else this.#ending = true
  }

  close(): void {
    this.#connection?.end()
  }

  // Events of the connection.

  opened(connection: DialedConnection): void {
    this.#connection = connection
    if (this.#exchange === null) {
      connection.end()
      return
    }
    this.#writer = new BufferedWriter(connection)
    this.#exchange.connected(this)
  }

  drain(): void {
    if (this.#writer?.flush() !== true) return
    if (this.#ending) this.close()
    else this.#exchange?.appDrained()
  }

  closed(failed: boolean): void {
    if (this.#exchange === null) {
      this.#pool.forget(this)
      return
    }
    const exchange = this.#leave(this.#exchange)
    const endsBody = this.#body.framing === 'close'
    switch (this.#phase) {
      case 'head':
        if (this.#isReused && !this.#hasReceived) exchange.closedUnheard(() => this.#isUnread())
        else exchange.closedWithoutResponse()
        break
      case 'body':
        if (endsBody && !failed) exchange.responseEnded(false)
        else exchange.cutOff(endsBody || failed ? 'reset' : 'end')
        break
      case 'responded':
        exchange.responseEnded(false)
        break
      case 'tunnel':
        exchange.tunnelEnded()
        break
    }
  }

  data(chunk: Buffer): void {
    const exchange = this.#exchange
    if (exchange === null || this.#phase === 'responded') {
      // Unsolicited bytes: any later response would be unsolicited too.
      this.#reusable = false
      this.#reservable = false
      this.close()
      return
    }
    this.#hasReceived = true
    if (this.#phase === 'tunnel') exchange.forward(chunk, 0, chunk.length)
    else if (this.#phase === 'body') this.#takeBody(exchange, chunk)
    else this.#takeHead(exchange, chunk)
  }

  async #isUnread(): Promise<boolean> {
    return (await this.#connection?.isUnread?.()) ?? false
  }

  #refused(reason: string): void {
    if (this.#exchange !== null) this.#leave(this.#exchange).refused(reason)
  }

  #takeHead(exchange: AppExchange, chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk])
    this.#partial = null
    let start = 0
    for (;;) {
      const end = findHeadEnd(bytes, start)
      if (end === -1) {
        const rest = bytes.subarray(start)
        const fault = rest.length > HEAD_LIMIT ? 'its header is too large' : faultOfPartial(rest)
        if (fault !== null) this.#fail(exchange, fault)
        else if (rest.length > 0) this.#partial = rest
        return
      }
      const fault =
        end - start > HEAD_LIMIT
          ? 'its header is too large'
          : this.head.parse(bytes, start, end, exchange.method)
      if (fault !== null) {
        this.#fail(exchange, fault)
        return
      }
      if (this.head.status >= 200) {
        this.#respond(exchange, bytes, start, end)
        return
      }
      if (this.head.status === 101) {
        this.#switch(exchange, bytes, start, end)
        return
      }
      this.#interimBytes += end - start
      if (this.#interimBytes > MAX_INTERIM_BYTES) {
        this.#fail(exchange, 'it sends too many interim responses')
        return
      }
      exchange.interim(bytes, start, end, this.head)
      start = end
    }
  }

  #respond(exchange: AppExchange, bytes: Buffer, start: number, end: number): void {
    const { framing, length, keepAlive } = this.head
    this.#body.begin(framing, length)
    if (exchange.unchunks) this.#body.pieces = []
    const bodyEnd = this.#body.consume(bytes, end, bytes.length)
    if (bodyEnd === -1) {
      this.#fail(exchange, 'its body is not in chunks')
      return
    }
    this.#phase = 'body'
    exchange.response(bytes, start, end, bodyEnd, this.head, this.#body)
    if (this.#body.done) this.#end(exchange, keepAlive && bodyEnd === bytes.length)
  }

  #takeBody(exchange: AppExchange, chunk: Buffer): void {
    const end = this.#body.consume(chunk, 0, chunk.length)
    if (end === -1) {
      this.#leave(exchange).cutOff('reset')
      this.close()
      return
    }
    exchange.responseBody(chunk, 0, end, this.#body)
    if (this.#body.done) this.#end(exchange, this.head.keepAlive && end === chunk.length)
  }

  #switch(exchange: AppExchange, bytes: Buffer, start: number, end: number): void {
    if (!exchange.tunnels) {
      this.#fail(exchange, 'it switches protocols without being asked')
      return
    }
    this.#phase = 'tunnel'
    exchange.becomeTunnel(bytes, start, this.head)
    if (end < bytes.length) exchange.forward(bytes, end, bytes.length)
  }

  #end(exchange: AppExchange, reusable: boolean): void {
    this.#phase = 'responded'
    // An app may leave a body unread and parse it as the next request, whose client would get a wrong response. One
    // that refuses a request is likely to.
    this.#hasCarriedBody ||= exchange.hasBody
    this.#reusable = reusable && !this.#hasCarriedBody
    this.#reservable = reusable && (!exchange.hasBody || this.head.status < 400)
    exchange.responseEnded(reusable)
  }

  #rest(now: number): void {
    this.#exchange = null
    this.#isReused = true
    this.idleSince = now
    this.resume()
  }

  #fail(exchange: AppExchange, fault: string): void {
    this.#leave(exchange).badResponse(fault)
    this.close()
  }

  /** Leaves the exchange, which continues without this connection. */
  #leave(exchange: AppExchange): AppExchange {
    this.#exchange = null
    this.#reusable = false
    this.#reservable = false
    exchange.detached()
    this.#pool.release(this, false)
    return exchange
  }
}
