import { PieceQueue } from '../../runtime/piece-queue.ts'
import type { FrameChannel } from './channel.ts'
import { CALL_WINDOW, CHUNK, decodeNumber, encodeNumber, FRAME, ProtocolError } from './protocol.ts'

/** Bytes read after which the peer may send more. */
const CREDIT_STEP = CALL_WINDOW / 4

/**
 * One end of a call's two streams of bytes. Each end sends at most `CALL_WINDOW` bytes beyond those that the other has
 * read, so a slow reader costs a bounded amount of memory and delays no other call.
 */
export class CallStream {
  readonly #channel: FrameChannel
  readonly #id: number
  /** Bytes that the peer has room for. */
  #room = CALL_WINDOW
  /** Bytes that the peer may still send. */
  #window = CALL_WINDOW
  /** Bytes read that the peer has not got back as room. */
  #read = 0
  #received = new PieceQueue()
  #ended = false
  #peerEnded = false
  #failure: Error | null = null
  /** Resolve when something has changed. */
  #waiting: Array<() => void> = []

  constructor(channel: FrameChannel, id: number) {
    this.#channel = channel
    this.#id = id
  }

  /** Whether both sides have ended. */
  get over(): boolean {
    return this.#ended && this.#peerEnded
  }

  /**
   * Sends the first of these bytes, as many as the peer has room for.
   *
   * @returns how many; a negative number if nothing can be sent any more
   */
  write(bytes: Uint8Array, offset = 0, length = bytes.length - offset): number {
    if (this.#ended || this.#failure !== null) return -1
    const end = offset + Math.min(length, this.#room)
    for (let at = offset; at < end; at += CHUNK) {
      this.#channel.send(FRAME.data, this.#id, bytes.subarray(at, Math.min(at + CHUNK, end)))
    }
    this.#room -= end - offset
    return end - offset
  }

  /** Resolves when the peer has room, or nothing can be sent any more. */
  async writable(): Promise<void> {
    while (this.#room === 0 && !this.#ended && this.#failure === null) await this.#change()
  }

  /** Sends all bytes as the peer reads them. Throws if the call fails, or the stream was ended. */
  async send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const written = this.write(bytes, at)
      if (written < 0) throw this.#failure ?? new Error('The stream was ended.')
      at += written
      if (at < bytes.length) await this.writable()
    }
  }

  /** Ends this side's stream. Calling it again is harmless. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    if (this.#failure === null) this.#channel.send(FRAME.end, this.#id)
    this.#changed()
  }

  /** Resolves when this side has ended its stream. Throws if the call fails before. */
  async untilEnded(): Promise<void> {
    while (!this.#ended) {
      if (this.#failure !== null) throw this.#failure
      await this.#change()
    }
  }

  /** Resolves to the next bytes, null at the end. Throws if the call fails. */
  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk = this.#received.shift()?.bytes
      if (chunk !== undefined) {
        this.#giveBack(chunk.length)
        return chunk
      }
      if (this.#failure !== null) throw this.#failure
      if (this.#peerEnded) return null
      await this.#change()
    }
  }

  /** Iterates over the bytes, in pieces, to the end. Throws if the call fails. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    for (let chunk = await this.read(); chunk !== null; chunk = await this.read()) yield chunk
  }

  /** Resolves to all bytes. Throws if the call fails, or if they are more than `most`. */
  async readAll(most: number): Promise<Uint8Array> {
    const all = new PieceQueue()
    let size = 0
    for await (const chunk of this.chunks()) {
      size += chunk.length
      if (size > most) throw new ProtocolError(`A call carries more than ${most} bytes.`)
      all.push(null, chunk)
    }
    return all.takeAll()
  }

  /** Acts on a frame of kind `data`, `more` or `end`. Throws `ProtocolError` if the peer exceeds what it may. */
  receive(kind: number, payload: Uint8Array): void {
    if (kind === FRAME.more) {
      const room = decodeNumber(payload)
      if (room === 0) throw new ProtocolError('A call is given no room.')
      this.#room += room
      if (this.#room > CALL_WINDOW) throw new ProtocolError('A call is given more room than there is.')
    } else if (this.#peerEnded) throw new ProtocolError('A call goes on after its end.')
    else if (kind === FRAME.end) this.#peerEnded = true
    else {
      if (payload.length === 0) throw new ProtocolError('A call carries data without bytes.')
      this.#window -= payload.length
      if (this.#window < 0) throw new ProtocolError('A call carries more bytes than there is room for.')
      // Nobody reads what comes after a failure.
      if (this.#failure === null) this.#received.push(null, payload)
    }
    this.#changed()
  }

  /** Makes reads and writes from now on fail, and sends nothing more. Has no effect after both ends. */
  fail(error: Error): void {
    if (this.#failure !== null || this.over) return
    this.#failure = error
    this.#received = new PieceQueue()
    this.#changed()
  }

  #giveBack(bytes: number): void {
    this.#read += bytes
    if (this.#read < CREDIT_STEP || this.#peerEnded) return
    this.#channel.send(FRAME.more, this.#id, encodeNumber(this.#read))
    this.#window += this.#read
    this.#read = 0
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #changed(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** A call, as a service sees it. When the service returns, its stream ends; what it throws is the answer. */
export interface ServedCall {
  readonly input: Readonly<Record<string, unknown>>
  readonly stream: CallStream
  /** Sends the answer. */
  readonly respond: (value: unknown) => void
  /** Fires when the call is over, however it ends. */
  readonly over: AbortSignal
}
