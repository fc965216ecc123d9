import { bodySize, type JournalEntry, serialized } from './entry.ts'

/** Limits of a journal. */
interface JournalOptions {
  /** Most entries; 0 disables the journal. */
  readonly entries: number
  /** Most bytes of memory. */
  readonly bytes: number
  readonly begun: JournalBegin
  /** Takes each entry, whatever the limits are. */
  readonly record?: ((entry: JournalEntry) => void) | undefined
}

/** The causes that empty a journal: the start of berth, a reset, a restore or a call that clears it. */
export const JOURNAL_CAUSES = ['start', 'reset', 'restore', 'clear'] as const

/** What may end the state with its journal, and begin the next. */
export type StateCause = Exclude<(typeof JOURNAL_CAUSES)[number], 'clear'>

/** When a journal was begun, and by what. */
interface JournalBegin {
  /** In milliseconds since 1970. */
  readonly at: number
  readonly by: (typeof JOURNAL_CAUSES)[number]
}

/** Default memory of a journal in bytes. */
export const JOURNAL_BYTES = 32 * 1024 * 1024

/**
 * Milliseconds, from the arrival of a request, for which its response is kept as a value. Serializing every response
 * at once would slow each request; a busy instance drops most of them before.
 */
const SERIALIZE_AFTER_MS = 250

/** An entry with its number. */
export interface NumberedEntry {
  /** 1 for the first entry; never used twice. */
  readonly seq: number
  readonly entry: JournalEntry
}

/**
 * Keeps the last requests and responses in memory, in the order of the responses. Adding one is cheap; readers mask
 * secrets.
 */
export class RequestJournal {
  readonly #capacity: number
  readonly #mostBytes: number
  readonly #record: JournalOptions['record']
  /** A ring buffer: an entry is at its `seq` modulo the size. */
  readonly #ring: (JournalEntry | undefined)[] = []
  readonly #listeners = new Set<() => void>()
  /** The `seq` of the oldest kept entry, and of the next. */
  #first = 1
  #next = 1
  /** The first `seq` whose response may not be serialized yet. */
  #firstLive = 1
  #bytes = 0
  /** How many responses are serialized next. */
  #due = 0
  #begun: JournalBegin

  constructor({ entries, bytes, begun, record }: JournalOptions) {
    this.#begun = begun
    this.#record = record
    this.#capacity = entries
    this.#mostBytes = bytes
  }

  /** Since when it has been kept, and what began it. */
  get begun(): JournalBegin {
    return this.#begun
  }

  /** Whether requests are captured: they are kept or recorded. */
  get isOn(): boolean {
    return this.#capacity > 0 || this.#record !== undefined
  }

  /** The number of kept entries. */
  get length(): number {
    return this.#next - this.#first
  }

  /** The `seq` of the newest entry, kept or not; 0 before the first. */
  get last(): number {
    return this.#next - 1
  }

  /** Adds an entry, and drops the oldest ones beyond the limits. */
  add(entry: JournalEntry): void {
    this.#record?.(entry)
    if (this.#capacity === 0) return
    if (this.#next - this.#first === this.#capacity) this.#drop()
    this.#ring[this.#next % this.#capacity] = entry
    this.#next += 1
    this.#bytes += bodySize(entry)
    this.#serializeSoon(entry.began - SERIALIZE_AFTER_MS)
    if (this.#bytes > this.#mostBytes) this.#shrink()
    if (this.#listeners.size > 0) for (const listener of this.#listeners) listener()
  }

  /**
   * Removes all entries.
   *
   * @param at the time, in milliseconds since 1970
   * @returns their number
   */
  clear(at: number): number {
    const { length } = this
    this.#begun = { at, by: 'clear' }
    while (this.length > 0) this.#drop()
    return length
  }

  /** Returns up to `most` kept entries after a `seq`, oldest first. */
  after(seq: number, most: number): NumberedEntry[] {
    this.#writeAll()
    const found: NumberedEntry[] = []
    for (let at = Math.max(seq + 1, this.#first); at < this.#next && found.length < most; at += 1) {
      const entry = this.#at(at)
      if (entry) found.push({ seq: at, entry })
    }
    return found
  }

  /** Iterates over the entries after one `seq` and before another, newest first. */
  *newest(after = 0, before = this.#next): Generator<NumberedEntry, void> {
    this.#writeAll()
    for (let at = before - 1; at > after && at >= this.#first; at -= 1) {
      const entry = this.#at(at)
      if (entry) yield { seq: at, entry }
    }
  }

  /** Returns the `seq` of an entry; undefined if it is not kept. */
  find(id: string): number | undefined {
    for (const { seq, entry } of this.newest()) if (entry.id === id) return seq
    return undefined
  }

  /**
   * Calls `listener` after an entry was added.
   *
   * @returns a function that ends the subscription
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #at(seq: number): JournalEntry | undefined {
    return this.#ring[seq % this.#capacity]
  }

  #writeAll(): void {
    this.#serializeBefore(Number.POSITIVE_INFINITY, this.length)
    this.#shrink()
  }

  /**
   * Serializes responses of requests that arrived before a moment, after the response that is under way has been sent. Two
   * for each call, so a backlog shrinks.
   */
  #serializeSoon(moment: number): void {
    const oldest = this.#at(this.#firstLive)
    if (oldest === undefined || oldest.began >= moment) return
    this.#due += 2
    if (this.#due > 2) return
    setImmediate(() => {
      const due = this.#due
      this.#due = 0
      this.#serializeBefore(performance.now() - SERIALIZE_AFTER_MS, due)
    })
  }

  /** Serializes up to `most` responses of requests that arrived before a moment, oldest first. */
  #serializeBefore(moment: number, most: number): void {
    for (let left = most; left > 0 && this.#firstLive < this.#next; left -= 1) {
      const entry = this.#at(this.#firstLive)
      if (entry === undefined || entry.began >= moment) return
      const whole = serialized(entry)
      this.#ring[this.#firstLive % this.#capacity] = whole
      this.#bytes += bodySize(whole) - bodySize(entry)
      this.#firstLive += 1
    }
  }

  #shrink(): void {
    while (this.#bytes > this.#mostBytes && this.length > 1) this.#drop()
  }

  #drop(): void {
    const oldest = this.#at(this.#first)
    this.#ring[this.#first % this.#capacity] = undefined
    this.#first += 1
    if (this.#firstLive < this.#first) this.#firstLive = this.#first
    if (oldest) this.#bytes -= bodySize(oldest)
  }
}
