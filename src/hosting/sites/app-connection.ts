import type { AppPort } from './app-port.ts'
import type { Exchange } from './exchange.ts'
import { Body } from './http1/body.ts'
import { findHeadEnd, HEAD_LIMIT } from './http1/head.ts'
import { ResponseHead } from './http1/response-head.ts'
import { Outlet } from './outlet.ts'

type Socket = Bun.Socket<AppConnection>

/** One connection to an app. It carries one request at a time, and hands the answer to the exchange that it is of. */
export class AppConnection {
  readonly head = new ResponseHead()
  readonly #body = new Body()
  readonly #port: AppPort
  #exchange: Exchange | null
  #socket: Socket | null = null
  #outlet: Outlet | null = null
  #phase: 'head' | 'body' | 'answered' | 'tunnel' = 'head'
  /** The beginning of a head that is not whole yet. */
  #partial: Buffer | null = null
  /** Something has come since the request went out. */
  #heard = false
  #reusable = false
  #paused = false
  /** Closes as soon as everything is out. */
  #ending = false
  /** It had a request before this one, so that the app may be closing it just now. */
  #used = false
  /** By the gateway's time; while no request is under way. */
  idleSince = 0

  constructor(port: AppPort, exchange: Exchange) {
    this.#port = port
    this.#exchange = exchange
    // What fails is told to `connectError`.
    Bun.connect({ hostname: port.host, port: port.port, data: this, socket: HANDLERS }).catch(() => {})
  }

  /** Whether everything that was sent is out. */
  get flushed(): boolean {
    return this.#outlet?.empty ?? true
  }

  /** Whether the app has answered whole and takes further requests here. */
  get reusable(): boolean {
    return this.#reusable
  }

  /** Takes the next request. */
  begin(exchange: Exchange): void {
    this.#exchange = exchange
    this.#phase = 'head'
    this.#heard = false
    this.#reusable = false
    this.#partial = null
  }

  /** See `Outlet.write`. */
  send(bytes: Uint8Array, from: number, to: number, shared: boolean): boolean {
    return this.#outlet?.write(bytes, from, to, shared) ?? true
  }

  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.#socket?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#socket?.resume()
  }

  /** The request is over: the connection waits for another or is closed. @param now by the gateway's time */
  release(now: number): void {
    this.#exchange = null
    this.#used = true
    this.idleSince = now
    this.resume()
    if (!this.#port.release(this, this.#reusable && this.flushed)) this.close()
  }

  /** The client has gone: so does this. */
  abandon(): void {
    const tunnel = this.#phase === 'tunnel'
    this.#exchange = null
    this.#port.release(this, false)
    this.resume()
    if (!tunnel || this.flushed) this.close()
    else this.#ending = true
  }

  close(): void {
    this.#socket?.end()
  }

  // What the socket tells.

  opened(socket: Socket): void {
    this.#socket = socket
    if (this.#exchange === null) {
      socket.end()
      return
    }
    socket.setNoDelay(true)
    this.#outlet = new Outlet(socket)
    this.#exchange.connected(this)
  }

  refused(): void {
    if (this.#exchange !== null) this.#leave(this.#exchange).refused()
  }

  drain(): void {
    if (this.#outlet?.flush() !== true) return
    if (this.#ending) this.close()
    else this.#exchange?.appDrained()
  }

  closed(failed: boolean): void {
    if (this.#exchange === null) {
      this.#port.forget(this)
      return
    }
    const exchange = this.#leave(this.#exchange)
    if (this.#phase === 'body' && this.#body.framing === 'close' && !failed) this.#phase = 'answered'
    if (this.#phase === 'answered') exchange.answerEnded(false)
    else if (this.#phase === 'tunnel') exchange.tunnelEnded()
    else if (this.#phase === 'head') exchange.unanswered(!this.#heard && this.#used)
    else exchange.cutOff(this.#body.framing === 'close' || failed)
  }

  receive(chunk: Buffer): void {
    const exchange = this.#exchange
    if (exchange === null || this.#phase === 'answered') {
      // Nobody has asked for it: what would come behind it is nobody's either.
      this.#reusable = false
      this.close()
      return
    }
    this.#heard = true
    if (this.#phase === 'tunnel') exchange.forward(chunk, 0, chunk.length, false)
    else if (this.#phase === 'body') this.#takeBody(exchange, chunk)
    else this.#takeHead(exchange, chunk)
  }

  #takeHead(exchange: Exchange, chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk])
    this.#partial = null
    let start = 0
    for (;;) {
      const end = findHeadEnd(bytes, start)
      if (end === -1) {
        if (bytes.length - start > HEAD_LIMIT) this.#fail(exchange, 'its header is too large')
        else if (start < bytes.length) this.#partial = bytes.subarray(start)
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
        this.#answer(exchange, bytes, start, end)
        return
      }
      if (this.head.status === 101) {
        this.#switch(exchange, bytes, start, end)
        return
      }
      exchange.interim(bytes, start, end, this.head)
      start = end
    }
  }

  #answer(exchange: Exchange, bytes: Buffer, start: number, end: number): void {
    const { framing, length, keepAlive } = this.head
    this.#body.begin(framing, length)
    if (exchange.unchunks) this.#body.pieces = []
    const bodyEnd = this.#body.consume(bytes, end, bytes.length)
    if (bodyEnd === -1) {
      this.#fail(exchange, 'its body is not in chunks')
      return
    }
    this.#phase = 'body'
    exchange.answer(bytes, start, end, bodyEnd, this.head, this.#body)
    if (this.#body.done) this.#end(exchange, keepAlive && bodyEnd === bytes.length)
  }

  #takeBody(exchange: Exchange, chunk: Buffer): void {
    const end = this.#body.consume(chunk, 0, chunk.length)
    if (end === -1) {
      this.#leave(exchange).cutOff(true)
      this.close()
      return
    }
    exchange.answerBody(chunk, 0, end, this.#body)
    if (this.#body.done) this.#end(exchange, this.head.keepAlive && end === chunk.length)
  }

  #switch(exchange: Exchange, bytes: Buffer, start: number, end: number): void {
    if (!exchange.upgrade) {
      this.#fail(exchange, 'it switches protocols without being asked')
      return
    }
    this.#phase = 'tunnel'
    exchange.becomeTunnel(bytes, start, this.head)
    if (end < bytes.length) exchange.forward(bytes, end, bytes.length, false)
  }

  #end(exchange: Exchange, reusable: boolean): void {
    this.#phase = 'answered'
    // An app may leave a body unread, and would take it for the next request: its answer would be another's.
    this.#reusable = reusable && !exchange.hasBody
    exchange.answerEnded(reusable)
  }

  #fail(exchange: Exchange, fault: string): void {
    this.#leave(exchange).badAnswer(fault)
    this.close()
  }

  /** Gives up the request; its exchange goes on without this connection. */
  #leave(exchange: Exchange): Exchange {
    this.#exchange = null
    this.#reusable = false
    exchange.detached()
    this.#port.release(this, false)
    return exchange
  }
}

/** One set of handlers for all connections. */
const HANDLERS: Bun.SocketHandler<AppConnection> = {
  open: (socket) => socket.data.opened(socket),
  data: (socket, chunk) => socket.data.receive(chunk),
  drain: (socket) => socket.data.drain(),
  close: (socket, error) => socket.data.closed(error !== undefined && error !== null),
  error: () => {},
  connectError: (socket) => socket.data.refused(),
}
