/** What a writer needs of a socket: `write` takes what fits and says how many bytes that were. */
export interface ByteSink {
  write(data: Uint8Array): number
}

/** Sends frames over a socket that takes them only in part when its peer is slow. */
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

  /** Sends a frame, now or when those before it are through. */
  send(frame: Uint8Array): void {
    if (this.#closed) return
    this.#queue.push(frame)
    this.#pending += frame.length
    if (this.#queue.length === 1) this.flush()
  }

  /** Goes on after the socket reported that it takes bytes again. */
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

  /** Forgets what was not sent; nothing is taken any more. */
  close(): void {
    this.#closed = true
    this.#queue = []
    this.#pending = 0
  }
}
