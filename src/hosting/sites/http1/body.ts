import type { ByteStream } from './byte-stream.ts'
import { type Framing, parseFields } from './head.ts'

/** Error: a body is malformed. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody'
}

/** Error: the connection has ended before the message that it carried. */
export class CutOff extends Error {
  override readonly name = 'CutOff'

  constructor() {
    super('the connection has ended before the end of the body')
  }
}

/** Bytes that chunk extensions and trailers of one body may have together. @bound user */
const EXTRAS_LIMIT = 16 * 1024

/**
 * The lines of a body in chunks, or their beginnings: a chunk's size, of more digits than any body needs, with extensions;
 * the empty line after its content; a trailer.
 */
const LINES = {
  size: /^(?:([0-9a-f]{1,12})(?:;([\t\x20-\x7e\x80-\xff]*))?(?:\r\n?)?)?$/i,
  'data end': /^(?:\r\n?)?$/,
  trailer: /^[\t\x20-\x7e\x80-\xff]*(?:\r\n?)?$/,
} as const

/** Characters of the longest size with the semicolon behind it. A longer line has text that is no size. */
const SIZE_LENGTH = 13

const LF = 10
const CRLF = Buffer.from('\r\n')

/** The end of a body in chunks. */
export const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Returns bytes as one chunk. */
export const chunk = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF])

/**
 * The content of a message, read from its connection (RFC 9112, sections 6.3 and 7.1). Chunk extensions and trailers are
 * checked as strictly as a head, and dropped.
 */
export class Body implements AsyncIterable<Buffer> {
  /** Whether all of the content has been read. */
  isOver: boolean
  readonly framing: Framing
  readonly #stream: ByteStream
  /** Bytes of the body, or of the chunk, that are still to come. */
  #remaining: number
  /** What comes next of a body in chunks. */
  #state: 'size' | 'data' | 'data end' | 'trailer' = 'size'
  /** A line that has not arrived whole. */
  #line = ''
  #extras = 0

  /** @param length of the content in bytes, if the framing is `length` */
  constructor(stream: ByteStream, framing: Framing, length: number) {
    this.#stream = stream
    this.framing = framing
    this.#remaining = length
    this.isOver = framing === 'none' || (framing === 'length' && length === 0)
  }

  /**
   * Returns content that has arrived, or undefined if none has.
   *
   * @throws MalformedBody
   */
  take(): Buffer | undefined {
    const pieces: Buffer[] = []
    while (!this.isOver) {
      const bytes = this.#stream.take()
      if (bytes === null && this.framing === 'close' && !this.#stream.hasFailed) this.isOver = true
      if (bytes === null || bytes === undefined) break
      this.#consume(bytes, pieces)
      // Pieces of chunks are often small. To join others would cost a copy.
      if (this.framing !== 'chunked') break
    }
    return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0]
  }

  /** Yields the content as it arrives. @throws MalformedBody, CutOff */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    for (;;) {
      const content = this.take()
      if (content !== undefined) yield content
      if (this.isOver) return
      if (content !== undefined) continue
      const bytes = await this.#stream.read()
      if (bytes !== null) this.#stream.unread(bytes)
      else if (this.framing !== 'close' || this.#stream.hasFailed) throw new CutOff()
    }
  }

  #consume(bytes: Buffer, pieces: Buffer[]): void {
    if (this.framing === 'close') pieces.push(bytes)
    else if (this.framing === 'length') {
      this.#content(bytes, pieces)
      this.isOver = this.#remaining === 0
    } else if (this.#state === 'data') {
      this.#content(bytes, pieces)
      if (this.#remaining === 0) this.#state = 'data end'
    } else this.#takeLine(this.#state, bytes)
  }

  #content(bytes: Buffer, pieces: Buffer[]): void {
    const end = Math.min(bytes.length, this.#remaining)
    this.#remaining -= end
    pieces.push(end === bytes.length ? bytes : bytes.subarray(0, end))
    if (end < bytes.length) this.#stream.unread(bytes.subarray(end))
  }

  #takeLine(state: keyof typeof LINES, bytes: Buffer): void {
    const end = bytes.indexOf(LF) + 1
    const piece = bytes.toString('latin1', 0, end === 0 ? bytes.length : end)
    // A line in small pieces costs no more than a whole one: behind its size only what is new of its text is matched.
    const isInText = end === 0 && this.#line.length > SIZE_LENGTH && !this.#line.endsWith('\r')
    this.#line += piece
    const match = isInText ? LINES.trailer.exec(piece) : LINES[state].exec(this.#line)
    if (match === null || this.#line.length > EXTRAS_LIMIT) throw new MalformedBody()
    if (end === 0) return
    this.#stream.unread(bytes.subarray(end))
    const line = this.#line.slice(0, -2)
    this.#line = ''
    if (state === 'data end') this.#state = 'size'
    else if (state === 'size') {
      const [, size = '', extensions = ''] = match
      this.#remaining = Number.parseInt(size, 16)
      this.#addExtra(extensions)
      this.#state = this.#remaining === 0 ? 'trailer' : 'data'
    } else if (line === '') this.isOver = true
    else {
      this.#addExtra(line)
      // Trailers must not carry framing, nor fields that only the gateway sets (RFC 9110, section 6.5.1).
      if (parseFields(`${line}\r\n`)?.special.length !== 0) throw new MalformedBody()
    }
  }

  #addExtra(text: string): void {
    this.#extras += text.length
    if (this.#extras > EXTRAS_LIMIT) throw new MalformedBody()
  }
}
