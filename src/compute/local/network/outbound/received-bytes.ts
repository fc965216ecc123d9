/**
 * Bytes of a message that arrives in pieces. Taking them takes time in proportion to their number, however small the
 * pieces are.
 */
export class ReceivedBytes {
  #buffer = Buffer.alloc(0)
  #start = 0
  #end = 0

  /** What has arrived and was not taken; valid until the next call of another method. */
  get bytes(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end)
  }

  append(piece: Uint8Array): void {
    const length = this.#end - this.#start + piece.length
    if (this.#end + piece.length > this.#buffer.length) {
      const grown = length * 2 > this.#buffer.length ? Buffer.allocUnsafe(length * 2) : this.#buffer
      this.#buffer.copy(grown, 0, this.#start, this.#end)
      this.#buffer = grown
      this.#end -= this.#start
      this.#start = 0
    }
    this.#buffer.set(piece, this.#end)
    this.#end += piece.length
  }

  /** Takes bytes from the beginning. */
  take(length: number): Buffer {
    const taken = Buffer.from(this.#buffer.subarray(this.#start, this.#start + length))
    this.#start += taken.length
    return taken
  }
}
