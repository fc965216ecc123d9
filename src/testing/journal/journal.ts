import { type Entry, sizeOf, written } from './entry.ts'

/** How much is kept. */
export interface JournalLimits {
  /** Entries; 0 for none. */
  readonly entries: number
  /** Bytes of memory in all. */
  readonly bytes: number
}

/** Bytes that a journal may take where nothing else is said. */
export const JOURNAL_BYTES = 32 * 1024 * 1024

/**
 * Milliseconds for which an answer is kept as the value that it was made from. To write each at once would cost every
 * request of a busy instance; there most are dropped before.
 */
const UNWRITTEN_MS = 250

/** An entry and its place among all that ever were. */
export interface Placed {
  /** 1 for the first; never used twice. */
  readonly seq: number
  readonly entry: Entry
}

/**
 * The last requests and their answers, in memory, in the order in which they were answered. To add one costs next to
 * nothing; whoever reads it masks secrets.
 */
export class Journal {
  readonly #capacity: number
  readonly #mostBytes: number
  /** A ring: the entry of a `seq` is at its remainder. */
  readonly #ring: (Entry | undefined)[] = []
  readonly #listeners = new Set<() => void>()
  /** The `seq` of the oldest that is kept, and of the next. */
  #first = 1
  #next = 1
  /** The `seq` below which every answer is written. */
  #unwritten = 1
  #bytes = 0

  constructor({ entries, bytes }: JournalLimits) {
    this.#capacity = entries
    this.#mostBytes = bytes
  }

  /** Whether anything is kept at all. */
  get isOn(): boolean {
    return this.#capacity > 0
  }

  /** How many entries are kept. */
  get length(): number {
    return this.#next - this.#first
  }

  /** The `seq` of the newest entry, be it kept or not; 0 before the first. */
  get last(): number {
    return this.#next - 1
  }

  /** Keeps an entry; the oldest go where there are too many, or too much in them. */
  add(entry: Entry): void {
    if (this.#capacity === 0) return
    if (this.#next - this.#first === this.#capacity) this.#drop()
    this.#ring[this.#next % this.#capacity] = entry
    this.#next += 1
    this.#bytes += sizeOf(entry)
    const moment = entry.began - UNWRITTEN_MS
    const oldest = this.#at(this.#unwritten)
    // Two, so that those of a moment with many requests are done after a while.
    if (oldest !== undefined && oldest.began < moment) this.#writeBefore(moment, 2)
    if (this.#bytes > this.#mostBytes) this.#shrink()
    if (this.#listeners.size > 0) for (const listener of this.#listeners) listener()
  }

  /** Forgets everything. @returns how many entries that were */
  clear(): number {
    const { length } = this
    while (this.length > 0) this.#drop()
    return length
  }

  /** What came after a `seq`, oldest first, as far as it is kept; at most so many. */
  after(seq: number, most: number): Placed[] {
    this.#writeAll()
    const found: Placed[] = []
    for (let at = Math.max(seq + 1, this.#first); at < this.#next && found.length < most; at += 1) {
      const entry = this.#at(at)
      if (entry) found.push({ seq: at, entry })
    }
    return found
  }

  /** Newest first, down to but without a `seq`. */
  *newest(seq = 0): Generator<Placed, void> {
    this.#writeAll()
    for (let at = this.#next - 1; at > seq && at >= this.#first; at -= 1) {
      const entry = this.#at(at)
      if (entry) yield { seq: at, entry }
    }
  }

  /** The `seq` of the entry of this id; 0 where it is not kept, before which there is nothing. */
  find(id: string): number {
    for (const { seq, entry } of this.newest()) if (entry.id === id) return seq
    return 0
  }

  /** Calls `listener` when an entry was added. @returns what ends that */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #at(seq: number): Entry | undefined {
    return this.#ring[seq % this.#capacity]
  }

  #writeAll(): void {
    this.#writeBefore(Number.POSITIVE_INFINITY, this.length)
    this.#shrink()
  }

  /** Writes answers of requests that came before a moment, oldest first, at most so many. */
  #writeBefore(moment: number, most: number): void {
    for (let left = most; left > 0 && this.#unwritten < this.#next; left -= 1) {
      const entry = this.#at(this.#unwritten)
      if (entry === undefined || entry.began >= moment) return
      const whole = written(entry)
      this.#ring[this.#unwritten % this.#capacity] = whole
      this.#bytes += sizeOf(whole) - sizeOf(entry)
      this.#unwritten += 1
    }
  }

  #shrink(): void {
    while (this.#bytes > this.#mostBytes && this.length > 1) this.#drop()
  }

  #drop(): void {
    const oldest = this.#at(this.#first)
    this.#ring[this.#first % this.#capacity] = undefined
    this.#first += 1
    if (this.#unwritten < this.#first) this.#unwritten = this.#first
    if (oldest) this.#bytes -= sizeOf(oldest)
  }
}
