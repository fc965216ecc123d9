/** One end of a connection, as it is written to: a socket, or a request of the main port. */
export interface Wire {
  /** The address of whoever is at the other end. */
  readonly remoteAddress: string
  /** Takes what can go out at once. @returns how many bytes that is; less than 0 where the connection is gone */
  write(bytes: Uint8Array, offset: number, length: number): number
  /** Reads no more for now, so that the sender has to wait. */
  pause(): void
  resume(): void
  /** Says that nothing more is sent; what still comes is read. */
  shutdown(): void
  /** Closes. */
  end(): void
  /** Closes so that the other end sees a failure. */
  terminate(): void
}

/** Writes to a wire and keeps what it does not take at once. Whoever reads pauses its source while there is any. */
export class Outlet {
  #waiting: Uint8Array[] = []

  constructor(readonly wire: Wire) {}

  /** Whether everything is out. */
  get empty(): boolean {
    return this.#waiting.length === 0
  }

  /**
   * Writes `bytes` from `from` to `to`.
   *
   * @param shared the bytes change after this call: what is kept is copied
   * @returns whether everything is out
   */
  write(bytes: Uint8Array, from: number, to: number, shared: boolean): boolean {
    let at = from
    if (this.#waiting.length === 0) {
      if (from === to) return true
      const taken = this.wire.write(bytes, from, to - from)
      // Where the connection is gone its end is told by itself.
      if (taken < 0 || taken === to - from) return true
      at += taken
    }
    this.#waiting.push(shared ? bytes.slice(at, to) : bytes.subarray(at, to))
    return false
  }

  /** Goes on where the wire takes more. @returns whether everything is out */
  flush(): boolean {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const taken = this.wire.write(next, 0, next.length)
      if (taken < 0) this.#waiting = []
      else if (taken === next.length) this.#waiting.shift()
      else {
        this.#waiting[0] = next.subarray(taken)
        return false
      }
    }
    return true
  }
}
