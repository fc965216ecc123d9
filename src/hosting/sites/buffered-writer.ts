/** A connection's socket, as far as a site uses it. */
export interface Duplex {
  /** Address of the peer. */
  readonly remoteAddress: string
  /**
   * Writes the bytes that fit into the send buffer.
   *
   * @returns the number of bytes written; negative if the connection is closed
   */
  write(bytes: Uint8Array, offset: number, length: number): number
  /** Stops reading, which makes the peer wait. */
  pause(): void
  resume(): void
  /** Closes the sending half. Bytes that still arrive are read. */
  shutdown(): void
  /** Closes the connection. */
  end(): void
  /** Resets the connection, which the peer sees as a failure. */
  terminate(): void
}

/**
 * Writes to a duplex and buffers the bytes that it does not accept at once. The caller pauses the source until the
 * buffer is empty.
 */
export class BufferedWriter<Target extends Pick<Duplex, 'write'> = Duplex> {
  #pending: Uint8Array[] = []

  constructor(readonly duplex: Target) {}

  /** Whether the buffer is empty. */
  get empty(): boolean {
    return this.#pending.length === 0
  }

  /**
   * Writes `bytes` from `from` to `to`, `to` exclusive.
   *
   * @param mustCopy whether the caller changes `bytes` after this call; what is buffered of them is then copied
   * @returns whether nothing is buffered; also true if the connection is closed, which drops the bytes
   */
  write(bytes: Uint8Array, from: number, to: number, mustCopy: boolean): boolean {
    let at = from
    if (this.#pending.length === 0) {
      if (from === to) return true
      const written = this.duplex.write(bytes, from, to - from)
      // The socket reports its own close.
      if (written < 0 || written === to - from) return true
      at += written
    }
    this.#pending.push(mustCopy ? bytes.slice(at, to) : bytes.subarray(at, to))
    return false
  }

  /**
   * Writes buffered bytes, as many as the duplex accepts.
   *
   * @returns whether the buffer is empty
   */
  flush(): boolean {
    for (let next = this.#pending[0]; next; next = this.#pending[0]) {
      const written = this.duplex.write(next, 0, next.length)
      if (written < 0) this.#pending = []
      else if (written === next.length) this.#pending.shift()
      else {
        this.#pending[0] = next.subarray(written)
        return false
      }
    }
    return true
  }
}
