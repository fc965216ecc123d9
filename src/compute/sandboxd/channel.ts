import { encodeJson, encodeSandboxdFrame, type FrameHandler, FrameReader, ProtocolError } from './protocol.ts'
import type { FrameTransport } from './transport.ts'

/** A channel's transport and event handlers. */
interface ChannelOptions {
  /** Belongs to the channel from here on; not yet open. */
  transport: FrameTransport
  /** Largest payload taken. */
  maxPayload: number
  /** Most frames that wait until the peer reads; with more it has broken the protocol. Without it there is no bound. */
  mostWaiting?: number
  /** Receives each frame. An exception is passed to `onBroken`. */
  onFrame: FrameHandler
  /** Called when the transport accepts bytes again and none wait. */
  onDrained?(): void
  /** Called once when the connection is gone, also after `close`. @param reason as the transport knows it */
  onClosed(reason?: string): void
  /** Called when the peer broke the protocol, or `onFrame` threw. */
  onBroken(error: unknown): void
}

/** Sends and receives frames over a transport; both of its ends use it. */
export class FrameChannel {
  readonly #options: ChannelOptions
  readonly #reader: FrameReader
  readonly #writer: FrameWriter

  constructor(options: ChannelOptions) {
    this.#options = options
    this.#reader = new FrameReader(options.maxPayload, options.onFrame)
    this.#writer = new FrameWriter(options.transport)
  }

  /** Begins to read and write the transport. */
  async open(): Promise<void> {
    const { transport, onDrained, onClosed, onBroken } = this.#options
    await transport.open({
      data: (chunk) => {
        try {
          this.#reader.push(chunk)
        } catch (error) {
          onBroken(error)
        }
      },
      drain: () => {
        this.#writer.flush()
        if (this.#writer.waiting === 0) onDrained?.()
      },
      closed: onClosed,
    })
  }

  /** Bytes that wait for the peer. */
  get pending(): number {
    return this.#writer.pending
  }

  /** See `FrameTransport.interruption`. */
  get interruption(): string | null | undefined {
    return this.#options.transport.interruption
  }

  /** Sends a frame, now or when the peer has room for it. */
  send(kind: number, id: number, payload?: Uint8Array): void {
    this.#send(encodeSandboxdFrame(kind, id, payload))
  }

  /** Sends a frame whose payload is JSON. */
  sendJson(kind: number, id: number, value: unknown): void {
    this.#send(encodeJson(kind, id, value))
  }

  /** Closes the connection at once; drops unsent frames. */
  close(): void {
    this.#writer.close()
    this.#options.transport.terminate()
  }

  #send(frame: Uint8Array): void {
    this.#writer.send(frame)
    const { mostWaiting = Number.POSITIVE_INFINITY, onBroken } = this.#options
    if (this.#writer.waiting > mostWaiting) onBroken(new ProtocolError('it does not read what it is sent'))
  }
}

/** The part of a transport that a writer needs: `write` accepts what fits and returns the number of bytes. */
interface ByteSink {
  write(data: Uint8Array): number
}

/** Sends frames over a transport that takes them only in part when its peer is slow. */
export class FrameWriter {
  readonly #sink: ByteSink
  #queue: Uint8Array[] = []
  #closed = false
  #pending = 0

  constructor(sink: ByteSink) {
    this.#sink = sink
  }

  /** Bytes that wait for the peer. */
  get pending(): number {
    return this.#pending
  }

  /** Frames that wait for the peer. */
  get waiting(): number {
    return this.#queue.length
  }

  /** Sends a frame, now or when those before it are through. */
  send(frame: Uint8Array): void {
    if (this.#closed) return
    this.#queue.push(frame)
    this.#pending += frame.length
    if (this.#queue.length === 1) this.flush()
  }

  /** Continues after the transport has reported that it accepts bytes again. */
  flush(): void {
    let sent = 0
    for (const frame of this.#queue) {
      const written = this.#sink.write(frame)
      if (written > 0) this.#pending -= written
      if (written < frame.length) {
        this.#queue = [frame.subarray(Math.max(written, 0)), ...this.#queue.slice(sent + 1)]
        return
      }
      sent += 1
    }
    this.#queue = []
  }

  /** Drops unsent frames and ignores later ones. */
  close(): void {
    this.#closed = true
    this.#queue = []
    this.#pending = 0
  }
}
