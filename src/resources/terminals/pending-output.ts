import type { Emulator } from '../../compute/emulators/emulators.ts'

/** Pieces are joined up to this many bytes. */
const SMALL_BYTES = 4 * 1024

const TAB = 9
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const DELETE = 127
/** The first byte of the control characters U+0080 to U+009F in UTF-8, which begin sequences too. */
const C1_LEAD = 0xc2

/** Something to be done with the emulator when all earlier output is drawn. */
type Mark = (emulator: Emulator) => Promise<void>

/** A piece of output. */
interface Piece {
  readonly data: Uint8Array
  /** Number of its lines if it is plain text, -1 if it is not, null if that is not known yet. */
  lines: number | null
}

/** Output that is not drawn yet, and what has to be done between its pieces, in order. */
export class PendingOutput {
  readonly #queue: (Piece | Mark)[] = []
  #bytes = 0
  #marks = 0

  /** Bytes of output in it. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether something has to be done after the output, or between its pieces. */
  get hasMarks(): boolean {
    return this.#marks > 0
  }

  /** Adds output, whose bytes must not change. */
  add(data: Uint8Array): void {
    this.#bytes += data.length
    const last = this.#queue.at(-1)
    // What is typed is echoed in single bytes.
    const isSmall = typeof last === 'object' && last.data.length + data.length <= SMALL_BYTES
    if (isSmall) this.#queue[this.#queue.length - 1] = { data: Buffer.concat([last.data, data]), lines: null }
    else this.#queue.push({ data, lines: null })
  }

  addMark(mark: Mark): void {
    this.#queue.push(mark)
    this.#marks += 1
  }

  /** Returns all output in one piece, which stays pending. */
  copy(): Uint8Array {
    return Buffer.concat(this.#queue.flatMap((one) => (typeof one === 'function' ? [] : one.data)))
  }

  /** Removes the first mark, or the output before it, at most `most` bytes. There must be something. */
  take(most: number): Uint8Array<ArrayBuffer> | Mark {
    const [first] = this.#queue
    if (typeof first === 'function') {
      this.#queue.shift()
      this.#marks -= 1
      return first
    }
    const taken: Uint8Array[] = []
    let bytes = 0
    for (
      let next: Piece | Mark | undefined = first;
      next !== undefined && typeof next !== 'function';
      next = this.#queue[0]
    ) {
      const data = next.data.subarray(0, most - bytes)
      if (data.length === 0) break
      taken.push(data)
      bytes += data.length
      if (data.length < next.data.length)
        this.#queue[0] = { data: next.data.subarray(data.length), lines: null }
      else this.#queue.shift()
    }
    this.#bytes -= bytes
    const whole = new Uint8Array(bytes)
    let at = 0
    for (const data of taken) {
      whole.set(data, at)
      at += data.length
    }
    return whole
  }

  /**
   * Drops lines of plain text from the front if at least `rows` complete lines of it follow. Only the normal screen
   * without margins scrolls that way.
   */
  dropPlainLines(rows: number): void {
    const plain = this.#plainPieces()
    let left = plain.reduce((lines, piece) => lines + piece.lines, 0)
    let dropped = 0
    for (const { lines } of plain) {
      if (left - lines <= rows) break
      left -= lines
      dropped += 1
    }
    const rest = dropped === 0 ? undefined : plain[dropped]
    const lineEnd = rest?.data.indexOf(LINE_FEED) ?? -1
    // What is kept has to begin with a whole line, in the first column.
    if (rest === undefined || rest.data[lineEnd - 1] !== CARRIAGE_RETURN) return
    this.#queue.splice(0, dropped + 1, { data: rest.data.subarray(lineEnd + 1), lines: rest.lines - 1 })
    for (const { data } of plain.slice(0, dropped)) this.#bytes -= data.length
    this.#bytes -= lineEnd + 1
  }

  /** Returns the pieces before the first that is not plain text. */
  #plainPieces(): { data: Uint8Array; lines: number }[] {
    const pieces: { data: Uint8Array; lines: number }[] = []
    for (const one of this.#queue) {
      if (typeof one === 'function') break
      one.lines ??= countPlainLines(one.data)
      if (one.lines < 0) break
      pieces.push({ data: one.data, lines: one.lines })
    }
    return pieces
  }
}

/** Returns the number of lines in plain text: UTF-8 without control characters but line ends and tabs; -1 for other. */
function countPlainLines(data: Uint8Array): number {
  const { length } = data
  const unaligned = -data.byteOffset & 3
  const wordCount = Math.max(0, length - unaligned) >> 2
  const words = new Int32Array(data.buffer, wordCount === 0 ? 0 : data.byteOffset + unaligned, wordCount)
  let lines = 0
  let at = 0
  while (at < length) {
    // Four bytes at a time, as long as none is less than a space or at least DEL.
    if (((at - unaligned) & 3) === 0 && at >= unaligned) {
      let word = (at - unaligned) >> 2
      while (word < wordCount && isPrintable(words[word] ?? 0)) word += 1
      at = unaligned + (word << 2)
      if (at >= length) break
    }
    const byte = data[at] ?? 0
    if (byte === LINE_FEED) lines += 1
    else if (byte < SPACE ? byte !== CARRIAGE_RETURN && byte !== TAB : byte === DELETE) return -1
    else if (byte === C1_LEAD && (data[at + 1] ?? 0) < 0xa0) return -1
    at += 1
  }
  return lines
}

/** Whether each of four bytes is surely U+0020 to U+007E. */
const isPrintable = (word: number): boolean =>
  ((((word - 0x20202020) & ~word) | word | (word + 0x01010101)) & 0x80808080) === 0
