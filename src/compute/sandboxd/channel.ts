import { encodeJson, encodeSandboxdFrame, type FrameHandler, FrameReader, ProtocolError } from './protocol.ts'
import type { FrameTransport } from './transport.ts'

/** A channel's transport and event handlers. */
interface ChannelOptions {
  /** Belongs to the channel from here on; not yet open. */
  transport: FrameTransport
  /** Largest payload taken. */
  maxPayload: number
  /** The kind of frames whose payloads are passed on in parts, as they come. */
  streamed?: number
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
    this.#reader = new FrameReader(options.maxPayload, options.onFrame, options.streamed)
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

  /** Sends a frame at the end of this turn of the event loop, or when the peer has room for it. */
  send(kind: number, id: number, payload?: Uint8Array): void {
    this.#send(encodeSandboxdFrame(kind, id, payload))
  }

  /** Sends a frame whose payload is JSON. */
  sendJson(kind: number, id: number, value: unknown): void {
    this.#send(encodeJson(kind, id, value))
  }

  /** Sends now what would be sent at the end of this turn. */
  flush(): void {
    this.#writer.flush()
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

/** Bytes that are written at once, or none of which waits for the end of the turn. Frames are joined up to that. */
const BATCH_BYTES = 64 * 1024

/**
 * Sends frames over a transport that takes them only in part when its peer is slow. Frames of one turn of the event loop
 * are written together: every process on the way to an engine's server, and there are up to five, pays for each write.
 */
export class FrameWriter {
  readonly #sink: ByteSink
  #queue: Uint8Array[] = []
  #closed = false
  #pending = 0
  /** Whether the transport has not taken all; it says when it takes more. */
  #isBlocked = false
  #turn: NodeJS.Immediate | null = null

  constructor(sink: ByteSink) {
    this.#sink = sink
  }

  /** Bytes that wait for the peer, or for the end of the turn. */
  get pending(): number {
    return this.#pending
  }

  /** Frames that do. */
  get waiting(): number {
    return this.#queue.length
  }

  /** Sends a frame, at the end of this turn or when those before it are through. */
  send(frame: Uint8Array): void {
    if (this.#closed) return
    this.#queue.push(frame)
    this.#pending += frame.length
    if (this.#isBlocked) return
    if (this.#pending >= BATCH_BYTES) this.flush()
    else this.#turn ??= setImmediate(() => this.flush())
  }

  /** Sends at once; continues after the transport has reported that it accepts bytes again. */
  flush(): void {
    if (this.#turn !== null) clearImmediate(this.#turn)
    this.#turn = null
    this.#isBlocked = false
    const frames = this.#queue
    for (let next = 0; next < frames.length; ) {
      const batch = batchFrom(frames, next)
      const bytes = batch.length === 1 && batch[0] ? batch[0] : Buffer.concat(batch)
      const written = Math.max(0, this.#sink.write(bytes))
      if (this.#closed) return
      this.#pending -= written
      next += batch.length
      if (written < bytes.length) {
        this.#queue = [bytes.subarray(written), ...frames.slice(next)]
        this.#isBlocked = true
        return
      }
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

/** Returns the frames from an index on that are written at once, at least one. */
function batchFrom(frames: readonly Uint8Array[], first: number): readonly Uint8Array[] {
  const lengthOf = (index: number): number => frames[index]?.length ?? Number.POSITIVE_INFINITY
  let end = first + 1
  for (let bytes = lengthOf(first) + lengthOf(end); bytes <= BATCH_BYTES; bytes += lengthOf(end)) end += 1
  return frames.slice(first, end)
}
