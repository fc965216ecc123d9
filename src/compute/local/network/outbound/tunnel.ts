import type { Disturbance } from './disturbance.ts'

/** A TCP socket of a tunnel. */
export type TunnelSocket = Bun.Socket<unknown>

/** Bytes that wait for a side that does not read, or that are late, before the other side is no longer read. */
const WAITING_LIMIT = 256 * 1024

/** What is to be written to a socket, after all that was to be written before. */
interface Waiting {
  /** Null for the end. */
  readonly bytes: Uint8Array | null
  /** When it may be written, by `performance.now()`. */
  readonly due: number
}

/** One direction of a tunnel: writes to one socket what another one receives, in order, and no faster than it is taken. */
class Flow {
  readonly #waiting: Waiting[] = []
  #size = 0
  #source: TunnelSocket | null = null
  #target: TunnelSocket | null = null
  #paused = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastDue = 0
  /** Whether the end closes the socket for both directions. */
  closes = false

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
    if (this.#size >= WAITING_LIMIT && !this.#paused) {
      this.#paused = true
      this.#source?.pause()
    }
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
        this.#size -= written
        if (written < next.bytes.length) {
          this.#waiting[0] = { bytes: next.bytes.subarray(written), due: 0 }
          break
        }
      }
      this.#waiting.shift()
    }
    if (this.#paused && this.#size < WAITING_LIMIT / 2) {
      this.#paused = false
      this.#source?.resume()
    }
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#target = null
  }

  #end(target: TunnelSocket): void {
    if (this.closes) target.end()
    else target.shutdown()
  }

  #add(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#size += waiting.bytes?.length ?? 0
  }
}

/** A connection of a server and the connection to the outside that continues it. */
export class Tunnel {
  /** From the server to the outside. */
  readonly #out = new Flow()
  /** From the outside to the server. */
  readonly #in = new Flow()
  readonly #inside: TunnelSocket
  readonly #onClosed: () => void
  #outside: TunnelSocket | null = null
  #closed = false
  #isInsideGone = false
  #isOutsideGone = false
  /** Delays what comes from the outside; null for none. */
  disturbance: Disturbance | null = null

  /** @param onClosed called once when it is over, or cut */
  constructor(inside: TunnelSocket, onClosed: () => void) {
    this.#inside = inside
    this.#onClosed = onClosed
    this.#out.source = inside
    this.#in.target = inside
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Writes to the server something of berth's own. */
  respond(response: string | Uint8Array): void {
    this.#in.push(typeof response === 'string' ? Buffer.from(response) : response)
  }

  /** Closes the connection after what was written to the server. */
  end(): void {
    this.#isOutsideGone = true
    this.#in.closes = true
    this.#in.push(null)
  }

  /** Bytes of the server; null is its end. */
  receive(bytes: Uint8Array | null): void {
    if (!this.#closed) this.#out.push(bytes)
  }

  /** Connects to the outside. Cuts the tunnel if that fails, except if `onFailed` says how it is told. */
  dial(hostname: string, port: number, onFailed: () => void = () => this.cut(), onOpen = () => {}): void {
    const open = (socket: TunnelSocket): void => {
      if (this.#closed) return void socket.terminate()
      this.#outside = socket
      socket.setNoDelay(true)
      this.#in.source = socket
      onOpen()
      this.#out.target = socket
    }
    Bun.connect<unknown>({
      hostname,
      port,
      allowHalfOpen: true,
      socket: {
        open,
        data: (_, bytes) => this.#arrived(bytes),
        end: () => this.#arrived(null),
        drain: () => this.#out.flush(),
        close: (_, error) => this.#outsideClosed(error !== undefined),
        error: () => this.cut(),
        connectError: () => {
          if (!this.#closed) onFailed()
        },
      },
    }).catch(() => {})
  }

  /** The server's side takes more. */
  drain(): void {
    this.#in.flush()
  }

  /** The server's side is gone. @param failed whether it was broken off */
  insideClosed(failed: boolean): void {
    if (this.#closed) return
    this.#isInsideGone = true
    if (failed || this.#outside === null) {
      this.cut()
      return
    }
    // What the server sent before it closed is still delivered.
    if (!this.#isOutsideGone && !this.#out.isEmpty) return
    this.#finish()
    this.#outside.end()
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
    if (late === null) this.cut()
    else this.#in.push(bytes, late)
  }

  #outsideClosed(failed: boolean): void {
    if (this.#closed) return
    if (failed) this.cut()
    else if (this.#isInsideGone) this.#finish()
    else this.end()
  }

  #finish(): void {
    this.#closed = true
    this.#out.stop()
    this.#in.stop()
    this.#onClosed()
  }
}
