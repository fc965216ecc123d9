import { encodeFrame, encodeJson, type FrameHandler, FrameReader } from './protocol.ts'
import { FrameWriter } from './writer.ts'

/** What a channel tells its owner. */
export interface ChannelOptions {
  /** The connected socket; it belongs to the channel from here on. */
  fd: number
  /** Largest payload taken. */
  maxPayload: number
  /** Receives each frame. Whatever it throws goes to `onBroken`. */
  onFrame: FrameHandler
  /** The peer is gone. Called once, also after `close`. */
  onClosed(): void
  /** The peer broke the protocol, or a frame could not be dealt with. */
  onBroken(error: unknown): void
}

/** Frames over an inherited socket, the same on both of its ends. */
export class FrameChannel {
  readonly #options: ChannelOptions
  readonly #reader: FrameReader
  #socket: Bun.Socket | null = null
  #writer: FrameWriter | null = null

  constructor(options: ChannelOptions) {
    this.#options = options
    this.#reader = new FrameReader(options.maxPayload, options.onFrame)
  }

  /** Begins to read and write the socket. */
  async open(): Promise<void> {
    const { fd, onClosed, onBroken } = this.#options
    const closed = once(onClosed)
    const options = {
      fd,
      socket: {
        open: (socket: Bun.Socket) => {
          this.#socket = socket
          this.#writer = new FrameWriter(socket)
        },
        data: (_: Bun.Socket, chunk: Uint8Array) => {
          try {
            this.#reader.push(chunk)
          } catch (error) {
            onBroken(error)
          }
        },
        drain: () => this.#writer?.flush(),
        close: closed,
        error: closed,
      },
    }
    // Bun takes `fd`; its types do not have it.
    await Bun.connect(options as unknown as Bun.UnixSocketOptions<undefined>)
  }

  /** Sends a frame, now or when the peer has room for it. */
  send(kind: number, id: number, payload?: Uint8Array): void {
    this.#writer?.send(encodeFrame(kind, id, payload))
  }

  /** Sends a frame whose payload is JSON. */
  sendJson(kind: number, id: number, value: unknown): void {
    this.#writer?.send(encodeJson(kind, id, value))
  }

  /** Ends the connection at once; what was not sent is forgotten. */
  close(): void {
    this.#writer?.close()
    this.#socket?.terminate()
  }
}

function once(call: () => void): () => void {
  let called = false
  return () => {
    if (called) return
    called = true
    call()
  }
}
