import { once } from '../../runtime/once.ts'
import type { Libc } from '../../system/system.ts'

/** A stream of bytes to and from a peer, which carries the frames. */
export interface FrameTransport {
  /** Begins to read. Called once, before all else; resolves when `write` may be called. */
  open(handlers: TransportHandlers): Promise<void>
  /** Accepts the first of these bytes and returns how many; `drain` is called when it accepts more. They must not change. */
  write(bytes: Uint8Array): number
  /** Closes the connection at once; drops what was not sent. `closed` is called. */
  terminate(): void
  /**
   * Why nothing reaches the peer at present, while `write` keeps the bytes for later; null if it does. A transport
   * without it is either open or closed.
   */
  readonly interruption?: string | null
  /**
   * Resolves when the peer has what was written, and knows that no more comes. A transport without it says so by its
   * end.
   */
  finish?(): Promise<void>
}

/** Receives the events of a transport. */
export interface TransportHandlers {
  data(chunk: Uint8Array): void
  drain(): void
  /** Called once, when the connection is gone. @param reason a sentence, if more is known than that */
  closed(reason?: string): void
}

/** A connected socket, which one process inherited from the other. */
export class SocketTransport implements FrameTransport {
  readonly #fd: number
  #socket: Bun.Socket | null = null

  /** Takes ownership of the descriptor. */
  constructor(fd: number) {
    this.#fd = fd
  }

  async open({ data, drain, closed }: TransportHandlers): Promise<void> {
    const end = once(closed)
    await Bun.connect({
      fd: this.#fd,
      socket: {
        open: (socket) => {
          this.#socket = socket
        },
        data: (_, chunk) => data(chunk),
        drain,
        close: end,
        error: end,
      },
    })
  }

  write(bytes: Uint8Array): number {
    return this.#socket?.write(bytes) ?? 0
  }

  terminate(): void {
    this.#socket?.terminate()
  }
}

/** The end of a pipe that takes bytes. A `Bun.FileSink` is one. */
export interface PipeSink {
  /** Takes bytes, which must not change; resolves when there is room for more. Rejects if the pipe is closed. */
  write(bytes: Uint8Array): number | Promise<number>
  /** Sends what it has taken. */
  flush(): number | Promise<number>
  end(): unknown
}

/** Two pipes: one to read, one to write. Any carrier that has a stream for each direction fits, such as ssh. */
export class PipeTransport implements FrameTransport {
  readonly #input: ReadableStream<Uint8Array>
  readonly #sink: PipeSink
  #handlers: TransportHandlers | null = null
  readonly #terminated = Promise.withResolvers<void>()
  #writing = false

  /** Takes ownership of both. */
  constructor(input: ReadableStream<Uint8Array>, output: PipeSink) {
    this.#input = input
    this.#sink = output
  }

  async open(handlers: TransportHandlers): Promise<void> {
    this.#handlers = handlers
    void this.#read(handlers)
  }

  write(bytes: Uint8Array): number {
    if (this.#writing) return 0
    this.#writing = true
    void this.#flush(bytes)
    return bytes.length
  }

  /** Whether the sink still writes what it was given. */
  protected get writing(): boolean {
    return this.#writing
  }

  terminate(): void {
    this.#terminated.resolve()
    void this.#end()
  }

  /** Waits for the pipe: a write that blocked would hold up timeouts and kills. */
  async #flush(bytes: Uint8Array): Promise<void> {
    try {
      await this.#sink.write(bytes)
      await this.#sink.flush()
      this.#writing = false
      this.#handlers?.drain()
    } catch {
      // The peer has closed the pipe, as reading notices too.
    }
  }

  async #read({ data, closed }: TransportHandlers): Promise<void> {
    const reader = this.#input.getReader()
    void this.#terminated.promise.then(() => reader.cancel()).catch(() => {})
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        data(value)
      }
    } catch {
      // Broken, which is the end as well.
    }
    await this.#end()
    closed()
  }

  async #end(): Promise<void> {
    try {
      await this.#sink.end()
    } catch {
      // It is closed already.
    }
  }
}

/**
 * A connected socket of a process that idles for long. As long as Bun has a socket of its own, it wakes each second to
 * look for timeouts: that is most of what an idle server costs. This one is read as any file is.
 */
export class QuietSocketTransport extends PipeTransport {
  readonly #fd: number
  readonly #libc: Pick<Libc, 'send'>

  /** Takes ownership of the descriptor. */
  constructor(fd: number, libc: Pick<Libc, 'send' | 'duplicate'>) {
    // Bun waits for each descriptor in one direction only.
    super(Bun.file(fd).stream(), Bun.file(libc.duplicate(fd)).writer())
    this.#fd = fd
    this.#libc = libc
  }

  /** Waits only if the peer has no room, so most frames go out at once. */
  override write(bytes: Uint8Array): number {
    if (this.writing) return 0
    const sent = this.#libc.send(this.#fd, bytes)
    return sent === bytes.length ? sent : sent + super.write(bytes.subarray(sent))
  }
}
