import { SHARED_ENDS, type SocketEnd } from '../../http/socket-ends.ts'
import type { Socket, SocketListener } from '../../http/web-socket.ts'
import type { ChangeMessage, SendMessage, StreamSignal } from './stream.ts'

/** Bytes on their way to a reader from which it is sent nothing until it has read. */
const FULL_BYTES = 1024 * 1024

/** Milliseconds between pings, and in which one has to be answered. */
const PING_MS = 30_000
const SILENCE_MS = 120_000

/** Why berth closes the socket of a stream of changes. docs/changes.md lists them. */
export const CHANGE_SOCKET_ENDS = {
  ...SHARED_ENDS,
  silent: { code: 4008, reason: 'the reader has not read or answered for two minutes' },
} as const satisfies Record<string, SocketEnd>

/** One WebSocket with a stream of changes. What its reader sends is ignored. */
export class ChangeSocket implements SocketListener {
  readonly #run: (send: SendMessage, ended: AbortSignal) => Promise<void>
  /** Called when it is closed. */
  readonly #onClosed: () => void
  readonly #ended = new AbortController()
  #socket: Socket | null = null
  /** Resolves when the reader has room again; null while it has. */
  #room: PromiseWithResolvers<void> | null = null
  #pings: Timer | undefined
  #heardAt = 0

  /** @param run sends messages until the signal fires; it begins when the socket is open */
  constructor(run: (send: SendMessage, ended: AbortSignal) => Promise<void>, onClosed: () => void) {
    this.#run = run
    this.#onClosed = onClosed
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
    this.#run((message) => this.#send(message), this.#ended.signal).then(
      () => this.close(SHARED_ENDS.stopping),
      () => this.close(FAILED),
    )
  }

  message(): void {}

  drained(): void {
    if (this.#room === null || (this.#socket?.getBufferedAmount() ?? 0) >= FULL_BYTES) return
    this.#room.resolve()
    this.#room = null
  }

  ponged(): void {
    this.#heardAt = performance.now()
  }

  closed(): void {
    this.#end()
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
      this.close(CHANGE_SOCKET_ENDS.silent)
      socket?.terminate()
    } else this.#socket?.ping()
  }

  #end(): void {
    clearInterval(this.#pings)
    if (this.#ended.signal.aborted) return
    this.#ended.abort()
    this.#room?.resolve()
    this.#onClosed()
  }
}

/** An internal error (RFC 6455, section 7.4.1). */
const FAILED: SocketEnd = { code: 1011, reason: 'a change could not be read' }
