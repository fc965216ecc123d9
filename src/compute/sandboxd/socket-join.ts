import { codeOf, messageOf } from '../../runtime/error-info.ts'
import type { CallStream } from './call-stream.ts'

/** A failure whose kind is reported to the other end. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Where a socket connects to: a loopback port, or a Unix socket. */
export type JoinTarget = { readonly hostname: string; readonly port: number } | { readonly unix: string }

/** Joins a socket to the streams of a call, at either end of it. */
export class SocketJoin {
  readonly #stream: CallStream
  readonly #closed = Promise.withResolvers<void>()
  /** Bytes of the socket that the other end has no room for yet. */
  #sending: Promise<void> | null = null
  #onDrain = (): void => {}
  #hasEnded = false

  constructor(stream: CallStream) {
    this.#stream = stream
    this.#closed.promise.catch(() => {})
  }

  /** Throws `ServiceError` `refused` if nothing listens there. */
  async connect(target: JoinTarget): Promise<Bun.Socket> {
    try {
      return await Bun.connect({
        ...(target as { hostname: string; port: number }),
        socket: {
          open: (socket) => void socket.setNoDelay(true),
          data: (socket, chunk) => this.receive(socket, chunk),
          drain: () => this.drain(),
          close: (_, error) => this.close(error),
          error: () => {},
          connectError: () => {},
        },
      })
    } catch (error) {
      throw new ServiceError(codeOf(error) === 'ECONNREFUSED' ? 'refused' : 'failed', messageOf(error))
    }
  }

  /** Resolves when the socket has closed and the other end has everything that came. Throws if it was reset. */
  async run(socket: Bun.Socket<unknown>): Promise<void> {
    void this.#writeAll(socket).catch(() => socket.terminate())
    await this.#closed.promise
    await this.#sending
  }

  /** Passes on bytes of the socket. */
  receive(socket: Bun.Socket<unknown>, chunk: Buffer): void {
    const written = this.#sending === null ? this.#stream.write(chunk) : 0
    if (written < 0 || written === chunk.length) return
    socket.pause()
    const sending = (this.#sending ?? Promise.resolve()).then(() =>
      this.#stream.send(chunk.subarray(written)),
    )
    sending.catch(() => {})
    this.#sending = sending
    void sending.then(
      () => {
        if (this.#sending !== sending) return
        this.#sending = null
        socket.resume()
      },
      () => socket.terminate(),
    )
  }

  /** Notes that the socket takes more bytes. */
  drain(): void {
    this.#onDrain()
  }

  /** Whether the socket has ended before it was closed. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Notes that nothing more comes from the socket, which may still be written to. */
  end(): void {
    this.#hasEnded = true
    if (this.#sending === null) this.#stream.end()
    else void this.#sending.then(() => this.#stream.end()).catch(() => {})
  }

  /** Notes that the socket is closed. @param error set if it was reset */
  close(error?: Error | null): void {
    if (error == null) this.#closed.resolve()
    else this.#closed.reject(new ServiceError('reset', messageOf(error)))
  }

  async #writeAll(socket: Bun.Socket<unknown>): Promise<void> {
    for (let chunk = await this.#stream.read(); chunk !== null; chunk = await this.#stream.read()) {
      for (let at = 0; at < chunk.length; ) {
        const drained = new Promise<void>((resolve) => {
          this.#onDrain = resolve
        })
        const written = socket.write(chunk, at, chunk.length - at)
        if (written < 0) return
        at += written
        if (at < chunk.length) await Promise.race([drained, this.#closed.promise])
      }
    }
    socket.end()
  }
}
