/** Masks of the first byte of a frame, and the opcodes from which a frame is a control frame (RFC 6455, section 5.2). */
const FIN = 0x80
const OPCODE = 0x0f
const FIRST_CONTROL = 0x8

/** Mask of the second byte, and its values for a length that follows in two or in eight bytes. */
const LENGTH = 0x7f
const TWO_BYTES = 126
const EIGHT_BYTES = 127

/** The end of the response to the handshake. */
const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * Adds up the sizes of the messages that a WebSocket server sends, as its bytes pass. A frame says its length before its
 * content, so a message is known to be too large before it takes memory.
 */
export class MessageSizes {
  readonly #most: number
  /** Matched bytes of the end of the handshake's response. */
  #headEnd = 0
  readonly #frameHead = Buffer.alloc(10)
  #frameHeadLength = 0
  /** Bytes of the frame that are still to come. */
  #ahead = 0
  /** Bytes of the message so far, which may have several frames. */
  #message = 0

  /** @param most bytes of the largest message that is allowed */
  constructor(most: number) {
    this.#most = most
  }

  /** Reads the next bytes of the connection. Returns whether a message is too large; no further bytes may follow then. */
  exceeds(bytes: Uint8Array): boolean {
    let at = this.#skipResponse(bytes)
    while (at < bytes.length) {
      const skipped = Math.min(this.#ahead, bytes.length - at)
      this.#ahead -= skipped
      at += skipped
      if (at === bytes.length) break
      this.#frameHead[this.#frameHeadLength] = bytes[at] ?? 0
      this.#frameHeadLength += 1
      at += 1
      if (this.#isFrameHeadWhole() && this.#beginFrame()) return true
    }
    return false
  }

  /** Skips what belongs to the response to the handshake. Returns the position after it. */
  #skipResponse(bytes: Uint8Array): number {
    let at = 0
    for (; at < bytes.length && this.#headEnd < HEAD_END.length; at += 1) {
      if (bytes[at] === HEAD_END[this.#headEnd]) this.#headEnd += 1
      else this.#headEnd = bytes[at] === HEAD_END[0] ? 1 : 0
    }
    return at
  }

  #isFrameHeadWhole(): boolean {
    if (this.#frameHeadLength < 2) return false
    const length = this.#shortLength
    return this.#frameHeadLength === (length === EIGHT_BYTES ? 10 : length === TWO_BYTES ? 4 : 2)
  }

  get #shortLength(): number {
    return (this.#frameHead[1] ?? 0) & LENGTH
  }

  /** Begins the content of the frame whose head has arrived. Returns whether the message is too large. */
  #beginFrame(): boolean {
    const first = this.#frameHead[0] ?? 0
    this.#frameHeadLength = 0
    this.#ahead = this.#contentLength()
    if ((first & OPCODE) >= FIRST_CONTROL) return false
    this.#message += this.#ahead
    if (this.#message > this.#most) return true
    if ((first & FIN) !== 0) this.#message = 0
    return false
  }

  #contentLength(): number {
    const length = this.#shortLength
    if (length === TWO_BYTES) return this.#frameHead.readUInt16BE(2)
    return length === EIGHT_BYTES ? Number(this.#frameHead.readBigUInt64BE(2)) : length
  }
}
