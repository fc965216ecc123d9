import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { unfinished } from '../../runtime/decode.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { writePrivate } from '../../storage/files.ts'
import type { Stream } from './output.ts'

/** Bytes of each stream that are kept: the first ones, and the last ones. */
const HEAD_BYTES = 64 * 1024
const TAIL_BYTES = 1024 * 1024

/** Most bytes of each stream that are kept. */
export const KEPT_BYTES = HEAD_BYTES + TAIL_BYTES

/** Largest number of bytes in an entry that a reader gets. */
const ENTRY_BYTES = 2 * 1024

/** Turns of the streams that are remembered. What was printed before them is read stream by stream. @bound program */
const MAX_TURNS = 2_000

/** Bytes at the start of a stream's file. They hold how many bytes the command has printed on the stream. */
const COUNT_BYTES = 8

/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 4

const STREAMS = ['stdout', 'stderr'] as const

/** A number for each stream. As a position in the output: the bytes of each stream before it. */
export type PerStream = Record<Stream, number>

/** A piece of one stream. */
export interface OutputEntry {
  /** The position behind it. */
  readonly position: Readonly<PerStream>
  readonly stream: Stream
  /** The number of bytes of its stream before it. */
  readonly offset: number
  readonly bytes: Uint8Array
}

/** Bytes of one stream that are not kept, in the place where they were. */
export interface OutputGap {
  /** The position behind them. */
  readonly position: Readonly<PerStream>
  readonly stream: Stream
  readonly dropped: number
}

/** What a reader asks for. */
export interface OutputQuery {
  readonly after: Readonly<PerStream>
  /** Missing for both. */
  readonly stream?: Stream | undefined
  /** Most entries. */
  readonly limit: number
}

/** Entries and gaps, in the order in which the command has printed, and the position behind them. */
export interface OutputPage {
  readonly items: readonly (OutputEntry | OutputGap)[]
  readonly next: Readonly<PerStream>
}

/** The bytes of a stream that are kept: those before `headEnd`, and those from `tailStart`. */
interface KeptRange {
  readonly headEnd: number
  readonly tailStart: number
}

/**
 * The output of one command, in files: the first and the last bytes of each stream. A position counts the bytes of each
 * stream that a reader has, so none is read twice or left out, however the output is cut into entries.
 */
export class KeptOutput {
  readonly #directory: string
  readonly #files: Partial<Record<Stream, number>> = {}
  readonly #counts: PerStream = { stdout: 0, stderr: 0 }
  /** The stream that printed, and the number of its bytes then. Oldest first. */
  #turns: [Stream, number][] = []
  /** Whether nothing more is added. */
  #isComplete = false

  private constructor(directory: string) {
    this.#directory = directory
  }

  /** Creates a directory for the output of a new command. */
  static create(directory: string): KeptOutput {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    return new KeptOutput(directory)
  }

  /** Opens the output of a command that has ended. Close it after use. */
  static open(directory: string): KeptOutput {
    const output = new KeptOutput(directory)
    output.#isComplete = true
    for (const stream of STREAMS) {
      const file = ifPresent(() => openSync(join(directory, stream), 'r'))
      if (file === null) continue
      output.#files[stream] = file
      output.#counts[stream] = readCount(file)
    }
    output.#turns = readTurns(join(directory, 'turns.json'))
    return output
  }

  /** The number of bytes that the command has printed. */
  get counts(): Readonly<PerStream> {
    return this.#counts
  }

  /** The number of bytes that are not kept any more. */
  get dropped(): Readonly<PerStream> {
    const droppedOf = (stream: Stream): number => {
      const { headEnd, tailStart } = this.#keptOf(stream)
      return tailStart - headEnd
    }
    return { stdout: droppedOf('stdout'), stderr: droppedOf('stderr') }
  }

  /** Adds what the command has printed. */
  write(stream: Stream, data: Uint8Array): void {
    if (this.#isComplete) return
    const file = this.#files[stream] ?? openSync(join(this.#directory, stream), 'w+', 0o600)
    this.#files[stream] = file
    const from = this.#counts[stream]
    const end = from + data.length
    // The bytes of the tail that the same data overwrites are left out.
    const tail = Math.max(from, HEAD_BYTES, end - TAIL_BYTES)
    if (from < HEAD_BYTES) writeAt(file, data.subarray(0, HEAD_BYTES - from), placeOf(from))
    for (let at = tail; at < end; ) {
      const room = HEAD_BYTES + TAIL_BYTES - (placeOf(at) - COUNT_BYTES)
      const piece = data.subarray(at - from, Math.min(end, at + room) - from)
      writeAt(file, piece, placeOf(at))
      at += piece.length
    }
    this.#counts[stream] = end
    writeCount(file, end)
    const last = this.#turns.at(-1)
    if (last?.[0] === stream) last[1] = end
    else this.#turns.push([stream, end])
    if (this.#turns.length > 2 * MAX_TURNS) this.#turns = this.#turns.slice(-MAX_TURNS)
  }

  /** Notes that nothing more is printed, and closes the files. Never throws. */
  complete(): void {
    if (this.#isComplete) return
    this.#isComplete = true
    const turns = this.#turns.slice(-MAX_TURNS)
    try {
      if (turns.length > 1) writePrivate(join(this.#directory, 'turns.json'), JSON.stringify(turns))
    } catch {
      // The disk is full, or the server was deleted. Without the file the streams are read one after the other.
    }
    this.close()
  }

  /** Closes the files. */
  close(): void {
    for (const stream of STREAMS) {
      const file = this.#files[stream]
      delete this.#files[stream]
      if (file !== undefined) closeSync(file)
    }
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Returns what is kept behind a position. A character that is not complete yet is left for later. */
  read({ after, stream: only, limit }: OutputQuery): OutputPage {
    const items: (OutputEntry | OutputGap)[] = []
    const position = { ...after }
    const ends: [Stream, number][] = STREAMS.map((stream) => [stream, this.#counts[stream]])
    const ranges = { stdout: this.#keptOf('stdout'), stderr: this.#keptOf('stderr') }
    for (const [stream, end] of [...this.#turns, ...ends]) {
      if (only !== undefined && stream !== only) continue
      const kept = ranges[stream]
      while (position[stream] < end && items.length < limit) {
        const offset = position[stream]
        if (offset >= kept.headEnd && offset < kept.tailStart) {
          position[stream] = kept.tailStart
          items.push({ position: { ...position }, stream, dropped: kept.tailStart - offset })
          continue
        }
        const isHead = offset < kept.headEnd
        const until = Math.min(end, isHead ? kept.headEnd : end, offset + ENTRY_BYTES)
        const bytes = this.#readRange(stream, offset, until)
        const length = this.#wholeCharacters(stream, offset, bytes)
        if (length === 0) break
        position[stream] = offset + length
        items.push({ position: { ...position }, stream, offset, bytes: bytes.subarray(0, length) })
      }
    }
    return { items, next: position }
  }

  /** Returns all kept bytes of a stream. */
  all(stream: Stream): { head: Uint8Array; tail: Uint8Array; dropped: number } {
    const { headEnd, tailStart } = this.#keptOf(stream)
    const head = this.#readRange(stream, 0, headEnd)
    const tail = this.#readRange(stream, tailStart, this.#counts[stream])
    return { head, tail, dropped: tailStart - headEnd }
  }

  /** Returns the length of bytes without a character at their end that later bytes complete. */
  #wholeCharacters(stream: Stream, offset: number, bytes: Uint8Array): number {
    const isEnd = this.#isComplete && offset + bytes.length === this.#counts[stream]
    return isEnd ? bytes.length : bytes.length - unfinished(bytes)
  }

  /** Returns the kept ranges of a stream. They split no character. */
  #keptOf(stream: Stream): KeptRange {
    const count = this.#counts[stream]
    if (count <= KEPT_BYTES) return { headEnd: count, tailStart: count }
    const first = this.#readRange(stream, HEAD_BYTES - CHARACTER_BYTES, HEAD_BYTES)
    const tailStart = count - TAIL_BYTES
    const later = this.#readRange(stream, tailStart, tailStart + CHARACTER_BYTES - 1)
    const continuing = later.findIndex((byte) => (byte & 0xc0) !== 0x80)
    return { headEnd: HEAD_BYTES - unfinished(first), tailStart: tailStart + Math.max(0, continuing) }
  }

  #readRange(stream: Stream, from: number, end: number): Uint8Array {
    const bytes = new Uint8Array(Math.max(0, end - from))
    const file = this.#files[stream]
    if (file === undefined) return bytes
    for (let at = from; at < end; ) {
      const place = placeOf(at)
      const room = COUNT_BYTES + HEAD_BYTES + TAIL_BYTES - place
      const read = readSync(file, bytes, at - from, Math.min(end - at, room), place)
      if (read === 0) break
      at += read
    }
    return bytes
  }
}

/** Returns the place in a stream's file of a byte: the tail begins anew where it is full. */
const placeOf = (at: number): number =>
  COUNT_BYTES + (at < HEAD_BYTES ? at : HEAD_BYTES + ((at - HEAD_BYTES) % TAIL_BYTES))

function writeAt(file: number, data: Uint8Array, place: number): void {
  for (let at = 0; at < data.length; ) at += writeSync(file, data, at, data.length - at, place + at)
}

function writeCount(file: number, count: number): void {
  const bytes = Buffer.alloc(COUNT_BYTES)
  bytes.writeDoubleLE(count)
  writeAt(file, bytes, 0)
}

/** Returns the number of bytes that a stream's file says the command has printed. */
function readCount(file: number): number {
  const bytes = Buffer.alloc(COUNT_BYTES)
  if (readSync(file, bytes, 0, COUNT_BYTES, 0) < COUNT_BYTES) return 0
  const count = bytes.readDoubleLE()
  const present = fstatSync(file).size - COUNT_BYTES
  return Number.isSafeInteger(count) && count >= 0 && Math.min(count, KEPT_BYTES) <= present ? count : 0
}

/** Returns the turns that were written at the end; none if the command ended with berth. */
function readTurns(path: string): [Stream, number][] {
  const text = ifPresent(() => readFileSync(path, 'utf8'))
  return text === null ? [] : (JSON.parse(text) as [Stream, number][])
}
