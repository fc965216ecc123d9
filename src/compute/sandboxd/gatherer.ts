import { CHUNK } from './protocol.ts'

/** Milliseconds for which pieces are gathered that follow one another: too short for a person to notice. */
const GATHER_MS = 4

/**
 * Puts small pieces of output together. A terminal gives out a few lines at a time, for each of which a frame would be
 * sent and its receiver woken up. The first piece after a pause is sent at once.
 */
export class OutputBatcher {
  readonly #send: (data: Uint8Array) => void
  #pieces: Uint8Array[] = []
  #bytes = 0
  #timer: Timer | null = null

  /** `send` is given the gathered bytes. */
  constructor(send: (data: Uint8Array) => void) {
    this.#send = send
  }

  /** Takes the next piece. */
  add(data: Uint8Array): void {
    if (this.#timer === null) {
      this.#send(data)
      this.#timer = setTimeout(() => this.#next(), GATHER_MS)
      return
    }
    this.#pieces.push(data)
    this.#bytes += data.length
    if (this.#bytes >= CHUNK) this.flush()
  }

  /** Sends what was gathered. */
  flush(): void {
    if (this.#bytes === 0) return
    const gathered = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#send(gathered)
  }

  /** Pieces go on coming: they are gathered anew. After a pause the next one is sent at once. */
  #next(): void {
    const paused = this.#bytes === 0
    this.flush()
    this.#timer = paused ? null : setTimeout(() => this.#next(), GATHER_MS)
  }
}
