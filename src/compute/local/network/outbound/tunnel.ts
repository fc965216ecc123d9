import { KEEP_ALIVE_MS, type ProgramSocket } from '../project-ports.ts'
import type { ClosingResponse } from './closing-response.ts'
import type { Disturbance } from './disturbance.ts'

/** One side of a tunnel. */
export type TunnelSocket = Omit<ProgramSocket, 'remoteAddress'>

/** What a tunnel leads to. */
type TunnelTarget = { readonly hostname: string; readonly port: number } | { readonly unix: string }

/**
 * Bytes that wait for a side that does not read, or that are late, before the other side is no longer read.
 * @bound program
 */
const WAITING_LIMIT = 256 * 1024

/** The same, of all connections of a server together. @bound program */
const SERVER_WAITING_LIMIT = 32 * 2 ** 20

/**
 * The most of all connections of a server together: each keeps what it has read at a time, half a megabyte. One that comes to
 * more is cut, unless it has so little that it leaves the others no less. @bound program
 */
const MOST_WAITING = 128 * 2 ** 20
const LITTLE_WAITING = 64 * 1024

/** Milliseconds in which the outside takes what a program has sent that is gone. @bound program */
const LINGER_MS = 60_000

/** Counts the bytes that wait in all tunnels of a server. */
export class WaitingBytes {
  #bytes = 0

  add(bytes: number): void {
    this.#bytes += bytes
  }

  /** Bytes of one direction of a tunnel before its source is no longer read. */
  get limit(): number {
    return this.#bytes < SERVER_WAITING_LIMIT ? WAITING_LIMIT : 1
  }

  /** Whether a server has no room for more. */
  get isFull(): boolean {
    return this.#bytes > MOST_WAITING
  }
}

/** What is to be written to a socket, after all that was to be written before. */
interface Waiting {
  /** Null for the end. */
  readonly bytes: Uint8Array | null
  /** When it may be written, by `performance.now()`. */
  readonly due: number
}

/** One direction of a tunnel: writes to one socket what another one receives, in order, and no faster than it is taken. */
class Flow {
  readonly #total: WaitingBytes
  readonly #waiting: Waiting[] = []
  #size = 0
  #source: TunnelSocket | null = null
  #target: TunnelSocket | null = null
  #paused = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastDue = 0
  #stopped = false
  /** Whether the end closes the socket for both directions. */
  closes = false

  readonly #overflown: () => void

  /** @param overflown called when the server has no room for what it was given */
  constructor(total: WaitingBytes, overflown: () => void) {
    this.#total = total
    this.#overflown = overflown
  }

  /** The side that is read. It may already be paused. */
  set source(socket: TunnelSocket) {
    this.#source = socket
  }

  /** The side that is written to, once it is open. */
  set target(socket: TunnelSocket) {
    this.#target = socket
    this.flush()
  }

  /** Passes bytes on; null is the end. */
  push(bytes: Uint8Array | null, lateMs = 0): void {
    if (this.#stopped) return
    if (this.#waiting.length === 0 && lateMs === 0 && this.#target !== null) {
      if (bytes === null) {
        this.#end(this.#target)
        return
      }
      const written = Math.max(0, this.#target.write(bytes))
      if (written === bytes.length) return
      this.#add({ bytes: bytes.subarray(written), due: 0 })
    } else {
      // What is late holds up what follows it.
      const due = lateMs === 0 ? 0 : performance.now() + lateMs
      this.#lastDue = Math.max(this.#lastDue, due)
      this.#add({ bytes, due: this.#lastDue })
      this.flush()
    }
    if (this.#size >= this.#total.limit && !this.#paused) {
      this.#paused = true
      this.#source?.pause()
    }
    if (this.#size > LITTLE_WAITING && this.#total.isFull) this.#overflown()
  }

  /** Writes what is due, as far as the socket takes it. */
  flush(): void {
    const target = this.#target
    if (target === null || this.#timer !== undefined) return
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const early = next.due === 0 ? 0 : next.due - performance.now()
      if (early > 0) {
        this.#timer = setTimeout(() => {
          this.#timer = undefined
          this.flush()
        }, early)
        break
      }
      if (next.bytes === null) this.#end(target)
      else {
        const written = Math.max(0, target.write(next.bytes))
        // Writing may have found the connection closed.
        if (this.#stopped) return
        this.#count(-written)
        if (written < next.bytes.length) {
          this.#waiting[0] = { bytes: next.bytes.subarray(written), due: 0 }
          break
        }
      }
      this.#waiting.shift()
    }
    if (this.#paused && this.#size < this.#total.limit / 2) {
      this.#paused = false
      this.#source?.resume()
    }
  }

  /** Bytes that wait. */
  get size(): number {
    return this.#size
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Loses what waits and what comes from now on. The source is read, so that its end is seen. */
  discard(): void {
    const source = this.#paused ? this.#source : null
    this.stop()
    source?.resume()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#target = null
    this.#source = null
    this.#waiting.length = 0
    this.#count(-this.#size)
  }

  #end(target: TunnelSocket): void {
    if (this.closes) target.end()
    else target.shutdown()
  }

  #add(waiting: Waiting): void {
    if (this.#stopped) return
    this.#waiting.push(waiting)
    this.#count(waiting.bytes?.length ?? 0)
  }

  #count(bytes: number): void {
    this.#size += bytes
    this.#total.add(bytes)
  }
}

/** Receives the events of a tunnel, each once. */
interface TunnelEvents {
  /** It is over, or cut. */
  closed(): void
  /** No connection to the outside is on its way any more, either. */
  gone(): void
}

/** A connection of a server and the connection to the outside that continues it. */
export class OutboundTunnel {
  /** From the server to the outside. */
  readonly #out: Flow
  /** From the outside to the server. */
  readonly #in: Flow
  readonly #inside: TunnelSocket
  readonly #events: TunnelEvents
  #outside: TunnelSocket | null = null
  #closed = false
  /** Connections to the outside that are on their way. Nothing ends one before it is open or has failed. */
  #dialing = 0
  #lingering: Timer | undefined
  /** Whether the server has sent its last byte. */
  #isInsideEnded = false
  #isInsideGone = false
  #isOutsideGone = false
  /** Changes what comes from the outside; null for nothing. */
  response: ClosingResponse | null = null
  /** Delays what comes from the outside; null for none. */
  disturbance: Disturbance | null = null

  /**
   * @param waiting counts what waits in all tunnels of the server
   */
  constructor(inside: TunnelSocket, waiting: WaitingBytes, events: TunnelEvents) {
    const overflown = (): void => this.cut()
    this.#out = new Flow(waiting, overflown)
    this.#in = new Flow(waiting, overflown)
    this.#inside = inside
    this.#events = events
    this.#out.source = inside
    this.#in.target = inside
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Bytes for the server that it has not read. */
  get unread(): number {
    return this.#in.size
  }

  /** Writes to the server something of berth's own. */
  respond(response: string | Uint8Array): void {
    this.#in.push(typeof response === 'string' ? Buffer.from(response) : response)
  }

  /** Closes the connection after what was written to the server. What the server still sends is lost. */
  end(): void {
    this.#isOutsideGone = true
    this.#out.discard()
    this.#in.closes = true
    this.#in.push(null)
  }

  /** Bytes of the server; null is its end. */
  receive(bytes: Uint8Array | null): void {
    if (this.#closed) return
    this.#isInsideEnded ||= bytes === null
    this.#out.push(bytes)
  }

  /** Whether a connection to the outside is open, or was. */
  get isOpen(): boolean {
    return this.#outside !== null
  }

  /**
   * Connects to the outside. Cuts the tunnel if that fails, except if `onFailed` reports it. If it is called
   * again before a connection is open, the first one that opens is used.
   *
   * @returns a promise that resolves when it has opened or failed, also if the tunnel was closed before
   */
  async dial(
    target: TunnelTarget,
    onFailed: () => void = () => this.cut(),
    onOpen = () => {},
  ): Promise<void> {
    this.#dialing += 1
    try {
      await this.#connect(target, onOpen)
    } catch {
      if (!this.#closed && this.#outside === null) onFailed()
    } finally {
      this.#dialing -= 1
      if (this.#closed && this.#dialing === 0) this.#events.gone()
    }
  }

  async #connect(target: TunnelTarget, onOpen: () => void): Promise<void> {
    const open = (socket: Bun.Socket<unknown>): void => {
      if (this.#closed || this.#outside !== null) return void socket.terminate()
      this.#outside = socket
      socket.setNoDelay(true)
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      this.#in.source = socket
      onOpen()
      this.#out.target = socket
    }
    await Bun.connect<unknown>({
      ...(target as { hostname: string; port: number }),
      allowHalfOpen: true,
      socket: {
        open,
        data: (_, bytes) => this.#arrived(bytes),
        end: () => this.#arrived(null),
        drain: () => {
          this.#out.flush()
          if (this.#isInsideGone && this.#out.isEmpty) this.#closeOutside()
        },
        close: (socket, error) => {
          if (socket === this.#outside) this.#outsideClosed(error !== undefined)
        },
        error: (socket) => {
          if (socket === this.#outside) this.cut()
        },
        connectError: () => {},
      },
    })
  }

  /** The server's side takes more. */
  drain(): void {
    this.#in.flush()
  }

  /** The server's side is gone. @param failed whether it was broken off */
  insideClosed(failed: boolean): void {
    if (this.#closed) return
    this.#isInsideGone = true
    // What the server sent before it closed is still delivered, unless nobody takes it.
    if ((failed && !this.#isInsideEnded) || this.#outside === null) this.cut()
    else if (this.#isOutsideGone || this.#out.isEmpty) this.#closeOutside()
    else this.#lingering = setTimeout(() => this.cut(), LINGER_MS)
  }

  /** Breaks both sides off, with a reset. */
  cut(): void {
    if (this.#closed) return
    this.#finish()
    this.#inside.terminate()
    this.#outside?.terminate()
  }

  #arrived(bytes: Uint8Array | null): void {
    if (this.#closed) return
    const late = this.disturbance === null ? 0 : this.disturbance.delay('data')
    const passed = bytes === null || this.response === null ? bytes : this.response.pass(bytes)
    if (late === null || (bytes !== null && passed === null)) {
      this.cut()
      return
    }
    if (bytes === null) this.#passRest(late)
    if (passed === null || passed.length > 0) this.#in.push(passed, late)
  }

  /** Passes on what was kept of a response that has ended within its head. */
  #passRest(late = 0): void {
    const rest = this.response?.rest() ?? new Uint8Array()
    if (rest.length > 0) this.#in.push(rest, late)
  }

  #outsideClosed(failed: boolean): void {
    if (this.#closed) return
    if (failed) this.cut()
    else if (this.#isInsideGone) this.#finish()
    else {
      this.#passRest()
      this.end()
    }
  }

  #closeOutside(): void {
    if (this.#closed) return
    this.#finish()
    this.#outside?.end()
  }

  #finish(): void {
    this.#closed = true
    clearTimeout(this.#lingering)
    this.#out.stop()
    this.#in.stop()
    this.#events.closed()
    if (this.#dialing === 0) this.#events.gone()
  }
}
