/** Fewest characters of a pattern. */
export const SHORTEST_PATTERN = 4

/** Places for each pattern in the table of a first, quick look, and places of it at least and at most. */
const QUICK_ROOM = 8
const QUICK_LEAST = 64
/** @bound system */
const QUICK_MOST = 65_536

/** A part of a text, `end` exclusive. */
export interface Span {
  start: number
  end: number
}

/**
 * Finds many texts in another, in time that does not grow with how many they are: by the first three characters of
 * each. The alphabet is that of UTF-16, as strings are.
 */
export class Patterns {
  readonly #all = new Set<string>()
  /** Patterns by their first three characters, the longest first. */
  readonly #byStart = new Map<number, string[]>()
  /** Whether any pattern may begin with the characters of a slot. Most texts need no further check. */
  #quick = new Uint8Array(QUICK_LEAST)
  /** One less than its length, which is a power of two. */
  #mask = QUICK_LEAST - 1
  /** First characters, and first two. */
  readonly #firsts = new Set<string>()
  #longest = 0

  /** Ignores patterns of fewer than 4 characters. */
  constructor(patterns: Iterable<string>) {
    this.add(patterns)
  }

  /** Finds these from now on, too. The time that this takes does not grow with those that are there. */
  add(patterns: Iterable<string>): void {
    const added = [...new Set(patterns)].filter(
      (pattern) => pattern.length >= SHORTEST_PATTERN && !this.#all.has(pattern),
    )
    const changed = new Set<string[]>()
    for (const pattern of added) {
      this.#all.add(pattern)
      const key = startKey(pattern, 0)
      const known = this.#byStart.get(key) ?? []
      known.push(pattern)
      this.#byStart.set(key, known)
      changed.add(known)
      this.#firsts.add(pattern.slice(0, 1)).add(pattern.slice(0, 2))
      this.#longest = Math.max(this.#longest, pattern.length)
    }
    for (const known of changed) known.sort((a, b) => b.length - a.length)
    const isMoved = this.#makeRoom()
    for (const pattern of isMoved ? this.#all : added) this.#quick[this.#slot(pattern, 0)] = 1
  }

  /** Makes the quick table large enough. Returns whether it is a new one, which is empty. */
  #makeRoom(): boolean {
    const room = 2 ** Math.ceil(Math.log2(Math.max(QUICK_LEAST, this.#all.size * QUICK_ROOM)))
    const size = Math.min(room, QUICK_MOST)
    if (size <= this.#quick.length) return false
    this.#quick = new Uint8Array(size)
    this.#mask = size - 1
    return true
  }

  /** Returns all of them. */
  [Symbol.iterator](): Iterator<string> {
    return this.#all[Symbol.iterator]()
  }

  /** Finds all patterns in a text, in order; joins those that overlap. */
  find(text: string): Span[] {
    const found: Span[] = []
    for (let at = 0; at <= text.length - SHORTEST_PATTERN; at += 1) {
      if (this.#quick[this.#slot(text, at)] === 0) continue
      const longest = this.#byStart.get(startKey(text, at))?.find((pattern) => text.startsWith(pattern, at))
      if (longest === undefined) continue
      const end = at + longest.length
      const last = found.at(-1)
      if (last !== undefined && at < last.end) last.end = Math.max(last.end, end)
      else found.push({ start: at, end })
    }
    return found
  }

  /**
   * Returns the start of the longest suffix that is an incomplete beginning of a pattern; the text's length if there
   * is none.
   */
  beginning(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at += 1) {
      if (this.#beginsWith(text, at)) return at
    }
    return text.length
  }

  /** Returns the slot of three characters; different ones may share it. */
  #slot(text: string, at: number): number {
    const mixed = (text.charCodeAt(at) * 31 + text.charCodeAt(at + 1)) * 31 + text.charCodeAt(at + 2)
    return mixed & this.#mask
  }

  /** Reports whether the text from `at` to its end is a beginning of a pattern, but no whole one. */
  #beginsWith(text: string, at: number): boolean {
    const left = text.length - at
    if (left < 3) return this.#firsts.has(text.slice(at))
    if (this.#quick[this.#slot(text, at)] === 0) return false
    const rest = text.slice(at)
    const known = this.#byStart.get(startKey(text, at)) ?? []
    return known.some((pattern) => pattern.length > left && pattern.startsWith(rest))
  }
}

/** Three characters as one number. */
const startKey = (text: string, at: number): number =>
  (text.charCodeAt(at) * 65_536 + text.charCodeAt(at + 1)) * 65_536 + text.charCodeAt(at + 2)
