import { type Entry, sizeOf } from './entry.ts'

/** How much is kept. */
export interface JournalLimits {
  /** Entries; 0 for none. */
  readonly entries: number
  /** Bytes of memory in all. */
  readonly bytes: number
}

/** Bytes that a journal may take where nothing else is said. */
export const JOURNAL_BYTES = 32 * 1024 * 1024

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
  readonly #limits: JournalLimits
  /** A ring: the entry of a `seq` is at its remainder. */
  readonly #ring: (Entry | undefined)[] = []
  readonly #listeners = new Set<() => void>()
  /** The `seq` of the oldest that is kept, and of the next. */
  #first = 1
  #next = 1
  #bytes = 0

  constructor(limits: JournalLimits) {
    this.#limits = limits
  }

  /** Whether anything is kept at all. */
  get isOn(): boolean {
    return this.#limits.entries > 0
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
    if (!this.isOn) return
    if (this.length === this.#limits.entries) this.#drop()
    this.#ring[this.#next % this.#limits.entries] = entry
    this.#next += 1
    this.#bytes += sizeOf(entry)
    while (this.#bytes > this.#limits.bytes && this.length > 1) this.#drop()
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
    const found: Placed[] = []
    for (let at = Math.max(seq + 1, this.#first); at < this.#next && found.length < most; at += 1) {
      const entry = this.#at(at)
      if (entry) found.push({ seq: at, entry })
    }
    return found
  }

  /** Newest first, down to but without a `seq`. */
  *newest(seq = 0): Generator<Placed, void> {
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
    return this.#ring[seq % this.#limits.entries]
  }

  #drop(): void {
    const oldest = this.#at(this.#first)
    this.#ring[this.#first % this.#limits.entries] = undefined
    this.#first += 1
    if (oldest) this.#bytes -= sizeOf(oldest)
  }
}
