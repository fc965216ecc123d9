import type { Socket, SocketEnd, SocketListener } from '../../http/web-socket.ts'
import type { ChangeMessage, SendMessage, StreamSignal } from './stream.ts'

/** Bytes on their way to a reader from which it is sent nothing until it has read. */
const FULL_BYTES = 1024 * 1024

/** Milliseconds between pings, and in which one has to be answered. */
const PING_MS = 30_000
const SILENCE_MS = 120_000

/** What a socket sends, and what ends it. */
interface ChangeSocketOptions {
  /** Sends messages until the signal fires. It begins when the socket is open. */
  run: (send: SendMessage, ended: AbortSignal) => Promise<void>
  /** Fires when all streams have to end: the socket then waits no longer for its reader. */
  ending: AbortSignal
  /** Returns why `run` has ended by itself. */
  endOfRun: () => SocketEnd
  /** Called when it is closed. */
  onClosed: () => void
}

/** One WebSocket with a stream of changes. What its reader sends is ignored. */
export class ChangeSocket implements SocketListener {
  readonly #options: ChangeSocketOptions
  readonly #ended = new AbortController()
  #socket: Socket | null = null
  /** Resolves when the reader has room again; null while it has. */
  #room: PromiseWithResolvers<void> | null = null
  #pings: Timer | undefined
  #heardAt = 0

  constructor(options: ChangeSocketOptions) {
    this.#options = options
  }

  /** Closes the socket. Further calls have no effect. */
  close({ code, reason }: SocketEnd): void {
    if (this.#ended.signal.aborted) return
    this.#end()
    this.#socket?.close(code, reason)
  }

  opened(socket: Socket): void {
    this.#socket = socket
    // It may have been closed before it was open.
    if (this.#ended.signal.aborted) {
      socket.terminate()
      return
    }
    this.#heardAt = performance.now()
    this.#pings = setInterval(() => this.#ping(), PING_MS)
    this.#pings.unref()
    const { run, ending, endOfRun } = this.#options
    ending.addEventListener('abort', this.#release)
    run((message) => this.#send(message), this.#ended.signal).then(
      () => {
        if (!this.#ended.signal.aborted) this.close(endOfRun())
      },
      () => this.close(FAILED),
    )
  }

  message(): void {}

  drained(): void {
    if ((this.#socket?.getBufferedAmount() ?? 0) >= FULL_BYTES) return
    this.#release()
  }

  ponged(): void {
    this.#heardAt = performance.now()
  }

  closed(): void {
    this.#end()
  }

  readonly #release = (): void => {
    this.#room?.resolve()
    this.#room = null
  }

  #send(message: ChangeMessage | StreamSignal): Promise<void> | undefined {
    const socket = this.#socket
    if (socket === null || this.#ended.signal.aborted) return undefined
    socket.send(JSON.stringify(message))
    if (socket.getBufferedAmount() < FULL_BYTES) return undefined
    this.#room = Promise.withResolvers()
    return this.#room.promise
  }

  #ping(): void {
    if (performance.now() - this.#heardAt > SILENCE_MS) {
      const socket = this.#socket
      this.close(SILENT)
      socket?.terminate()
    } else this.#socket?.ping()
  }

  #end(): void {
    clearInterval(this.#pings)
    if (this.#ended.signal.aborted) return
    this.#ended.abort()
    this.#options.ending.removeEventListener('abort', this.#release)
    this.#release()
    this.#options.onClosed()
  }
}

/** An internal error (RFC 6455, section 7.4.1). */
const FAILED: SocketEnd = { code: 1011, reason: 'a change could not be read' }

const SILENT: SocketEnd = { code: 4008, reason: 'the reader has not read or answered for two minutes' }
