/** Most bytes that are kept, and a multiple of that which is allocated so that bytes are seldom moved. */
const MOST_BYTES = 128 * 1024
const ALLOCATED = 2 * MOST_BYTES

const LINE_FEED = 10

/** The end of a program's output, from which its screen can be drawn anew. */
export class KeptOutput {
  #buffer = new Uint8Array(1024)
  #length = 0
  /** Whether earlier output is not there any more. */
  #isCut = false

  /** Adds output. */
  add(data: Uint8Array): void {
    const added = data.subarray(Math.max(0, data.length - MOST_BYTES))
    this.#isCut ||= added.length < data.length
    if (this.#length + added.length > this.#buffer.length) this.#makeRoom(added.length)
    this.#buffer.set(added, this.#length)
    this.#length += added.length
  }

  /** Returns what is kept, from the beginning of a line on if earlier output is missing, and keeps nothing any more. */
  take(): Uint8Array {
    const kept = this.#buffer.slice(0, this.#length)
    const begin = this.#isCut ? kept.indexOf(LINE_FEED) + 1 : 0
    this.#length = 0
    return kept.subarray(begin)
  }

  #makeRoom(bytes: number): void {
    const size = Math.min(ALLOCATED, Math.max(2 * this.#buffer.length, this.#length + bytes))
    const kept = this.#length + bytes <= size ? this.#length : Math.min(this.#length, MOST_BYTES)
    const buffer = size > this.#buffer.length ? new Uint8Array(size) : this.#buffer
    this.#isCut ||= kept < this.#length
    buffer.set(this.#buffer.subarray(this.#length - kept, this.#length))
    this.#buffer = buffer
    this.#length = kept
  }
}
