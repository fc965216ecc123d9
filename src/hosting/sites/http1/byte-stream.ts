import type { DialedConnection, DialHandlers } from '../../../compute/sandbox.ts'

/** A connection's socket, as far as a `ByteStream` uses it. A `Bun.Socket` is one. */
export type StreamSocket = Pick<DialedConnection, 'write' | 'pause' | 'resume' | 'end' | 'terminate'>

/** Bytes that may arrive before they are read. With more, the peer has to wait. @bound user */
const AHEAD_LIMIT = 64 * 1024

/** Memory to assemble messages in. The conversion of each message to bytes of its own would take longer than all the rest. */
const ASSEMBLY = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * A connection that is read and written at the pace of its slower side. Pass it the events of a socket, as the handlers of
 * `Sandbox.dial` for example.
 */
export class ByteStream implements DialHandlers {
  /** Resolves when the connection is closed, whichever side has closed it. What has arrived can still be read. */
  readonly closing: Promise<void>
  /** Whether the connection was reset or broke. */
  hasFailed = false
  isClosed = false
  isOpened = false
  /** Number of bytes that have arrived. */
  received = 0
  #socket: StreamSocket | null = null
  readonly #resolveClosing: () => void
  #arrived: Buffer[] = []
  #ahead = 0
  #isPaused = false
  /** Whether what arrives is dropped. */
  #isDeaf = false
  /** Called when there is more to read. */
  #readable: (() => void) | null = null
  /** Bytes that the socket has not accepted yet. */
  #unwritten: Uint8Array[] = []
  /** Called when all bytes are written, or the connection is closed. */
  #flushed: (() => void)[] = []

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closing = promise
    this.#resolveClosing = resolve
  }

  // Events of the socket.

  opened(socket: StreamSocket): void {
    this.#socket = socket
    this.isOpened = !this.isClosed
    if (this.isClosed) socket.end()
  }

  data(chunk: Buffer): void {
    if (this.#isDeaf) return
    this.received += chunk.length
    this.#arrived.push(chunk)
    this.#ahead += chunk.length
    if (this.#ahead > AHEAD_LIMIT && !this.#isPaused) {
      this.#isPaused = true
      this.#socket?.pause()
    }
    this.#wake()
  }

  drain(): void {
    for (let next = this.#unwritten[0]; next !== undefined; next = this.#unwritten[0]) {
      const written = this.#socket?.write(next, 0, next.length) ?? -1
      if (written < 0) this.#unwritten = []
      else if (written < next.length) {
        this.#unwritten[0] = next.subarray(written)
        return
      } else this.#unwritten.shift()
    }
    for (const notify of this.#flushed.splice(0)) notify()
  }

  closed(failed: boolean): void {
    if (this.isClosed) return
    this.isClosed = true
    this.hasFailed = failed
    this.#unwritten = []
    this.#resolveClosing()
    this.#wake()
    for (const notify of this.#flushed.splice(0)) notify()
  }

  // For the owner.

  /** Whether bytes that have arrived are still to be read. */
  get hasArrived(): boolean {
    return this.#arrived.length > 0
  }

  /** Returns bytes that have arrived, null at the end of the connection, or undefined if nothing has arrived yet. */
  take(): Buffer | null | undefined {
    const chunk = this.#arrived.shift()
    if (chunk === undefined) return this.isClosed || this.#isDeaf ? null : undefined
    this.#ahead -= chunk.length
    if (this.#isPaused && this.#ahead === 0) {
      this.#isPaused = false
      this.#socket?.resume()
    }
    return chunk
  }

  /** Resolves with bytes as soon as some have arrived, or null at the end. One caller at a time. */
  async read(): Promise<Buffer | null> {
    for (;;) {
      const chunk = this.take()
      if (chunk !== undefined) return chunk
      await new Promise<void>((resolve) => {
        this.#readable = resolve
      })
    }
  }

  /** Puts bytes back that were not used, to be read next. */
  unread(bytes: Buffer): void {
    if (bytes.length === 0 || this.#isDeaf) return
    this.#arrived.unshift(bytes)
    this.#ahead += bytes.length
  }

  /** Drops what has arrived and will arrive, so that it does not hold up the end of the connection. */
  ignoreRest(): void {
    this.#isDeaf = true
    this.#arrived = []
    this.#ahead = 0
    if (this.#isPaused) this.#socket?.resume()
    this.#isPaused = false
    this.#wake()
  }

  /**
   * Writes bytes, which the caller must not change. Bytes are dropped if the connection is closed.
   *
   * @returns whether the socket has accepted all of them; if not, wait for `flushed`
   */
  write(bytes: Uint8Array): boolean {
    if (this.isClosed || bytes.length === 0) return true
    let rest = bytes
    if (this.#unwritten.length === 0) {
      const written = this.#socket?.write(bytes, 0, bytes.length) ?? 0
      // The socket reports its own close.
      if (written < 0 || written === bytes.length) return true
      rest = bytes.subarray(written)
    }
    this.#unwritten.push(rest)
    return false
  }

  /**
   * Writes a head, and the content after it, at once.
   *
   * @param head in Latin-1
   * @returns see `write`
   */
  writeMessage(head: string, content: Uint8Array | null): boolean {
    const length = head.length + (content?.length ?? 0)
    const isShort = length <= ASSEMBLY.length && this.#unwritten.length === 0
    const bytes = isShort ? ASSEMBLY : Buffer.allocUnsafeSlow(length)
    bytes.write(head, 'latin1')
    if (content !== null) bytes.set(content, head.length)
    if (!isShort) return this.write(bytes)
    if (this.isClosed) return true
    const written = this.#socket?.write(bytes, 0, length) ?? 0
    if (written < 0 || written === length) return true
    this.#unwritten.push(Uint8Array.from(bytes.subarray(written, length)))
    return false
  }

  /** Writes bytes and resolves when the socket accepts more. */
  async send(bytes: Uint8Array): Promise<void> {
    if (!this.write(bytes)) await this.flushed()
  }

  /** Number of bytes that the socket has not accepted yet. */
  get waiting(): number {
    return this.#unwritten.reduce((sum, bytes) => sum + bytes.length, 0)
  }

  /** Resolves when all bytes are written, or the connection is closed. */
  flushed(): Promise<void> {
    if (this.#unwritten.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#flushed.push(resolve))
  }

  /**
   * Closes the connection. What is not written yet is lost.
   *
   * @param isCutOff whether what has arrived so far counts as incomplete
   */
  end(isCutOff = false): void {
    this.closed(isCutOff)
    this.#socket?.end()
  }

  /** Resets the connection, which the peer sees as a failure. */
  terminate(): void {
    this.closed(true)
    this.#socket?.terminate()
  }

  #wake(): void {
    const notify = this.#readable
    this.#readable = null
    notify?.()
  }
}

/** Copies bytes from one connection to another until one of them ends. */
export async function copy(from: ByteStream, to: ByteStream): Promise<void> {
  for (let bytes = await from.read(); bytes !== null && !to.isClosed; bytes = await from.read()) {
    await to.send(bytes)
  }
}
