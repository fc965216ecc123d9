import { firstCharacters } from './characters.ts'
import { Patterns, SHORTEST_PATTERN, type Span } from './patterns.ts'

/** Values shorter than this are not masked: they would blot out half of every log. */
const SHORTEST_MASKED = SHORTEST_PATTERN

/** Shortest base64 of a value's inner part that is looked for: a shorter one occurs by chance. */
const SHORTEST_INNER = 8

/** Bytes of a value of which base64 may have so many. */
const SHORTEST_INSIDE = 6

/** The replacement for a secret. */
export const MASK = '***'

/**
 * Characters of replaced values that stay hidden: as many as the variables of a process have at most.
 * @bound program
 */
const MOST_REPLACED = 1024 * 1024

/** What each line of a replaced value counts besides its characters, so that short ones are not too many. */
const LINE_COST = 64

/**
 * The values that a log must not show: each as it is, each of its lines, and as JSON, URLs and base64 encode it.
 * Replaced values stay hidden, because an old process may still print one.
 */
export class Masks {
  /** Values that are hidden for good. */
  readonly #fixed = new Set<string>()
  /** Values of variables, the current ones and those that they have replaced, the oldest first. */
  readonly #variables = new Set<string>()
  #patterns = new Patterns([])

  /** Hides these values for good. Ignores values of fewer than 4 characters. */
  add(values: Iterable<string>): void {
    const added = new Set(values).difference(this.#fixed)
    for (const value of added) this.#fixed.add(value)
    this.#patterns.add([...added].flatMap(variantsOf))
  }

  /**
   * Hides the values that variables have now, and still those that they had before. Of these it forgets the oldest when
   * they are over `MOST_REPLACED`: variables can be set again and again, and each value costs memory many times over.
   */
  update(values: Iterable<string>): void {
    const current = new Set(values)
    const added = current.difference(this.#variables)
    if (added.size === 0) return
    for (const value of current) {
      this.#variables.delete(value)
      this.#variables.add(value)
    }
    if (this.#forgetReplaced(current))
      this.#patterns = new Patterns([...this.#fixed.union(this.#variables)].flatMap(variantsOf))
    else this.#patterns.add([...added].flatMap(variantsOf))
  }

  /** Forgets the oldest replaced values if there are too many, and some more, since that costs. Returns whether it did. */
  #forgetReplaced(current: ReadonlySet<string>): boolean {
    const replaced = [...this.#variables.difference(current)]
    let size = replaced.reduce((sum, value) => sum + costOf(value), 0)
    if (size <= MOST_REPLACED) return false
    for (const value of replaced) {
      if (size <= MOST_REPLACED / 2) break
      this.#variables.delete(value)
      size -= costOf(value)
    }
    return true
  }

  /** The texts that are hidden: values and their other forms. */
  get patterns(): Patterns {
    return this.#patterns
  }

  /** Returns a whole text with `***` for every secret in it. */
  mask(text: string): string {
    const found = this.#patterns.find(text)
    if (found.length === 0) return text
    let masked = ''
    let at = 0
    for (const { start, end } of found) {
      masked += text.slice(at, start) + MASK
      at = end
    }
    return masked + text.slice(at)
  }

  /** Returns the first characters of a text, masked, including a secret that extends beyond them. */
  beginning(text: string, length: number): string {
    if (text.length <= length) return this.mask(text)
    const stream = this.stream()
    return stream.push(firstCharacters(text, length)) + stream.flush()
  }

  /** Returns a mask for a text that arrives in pieces. */
  stream(): MaskStream {
    return new MaskStream(this)
  }
}

/**
 * Masks a text that arrives in pieces, including secrets split across pieces. Holds back the end of a piece that may
 * begin a secret, which is shorter than the longest secret.
 */
export class MaskStream {
  readonly #masks: Masks
  /** The end of the input in which a secret may begin. */
  #held = ''
  /** How many characters of it have been given out, as they are or masked. */
  #emitted = 0
  /** Whether the last of those were given out as `***`. */
  #masked = false

  constructor(masks: Masks) {
    this.#masks = masks
  }

  /** Whether something is held back. */
  get holding(): boolean {
    return this.#held.length > this.#emitted
  }

  /** Takes the next piece; returns the part that is certain. */
  push(piece: string): string {
    const text = this.#held + piece
    const patterns = this.#masks.patterns
    const keepFrom = patterns.beginning(text)
    return this.#emit(text, patterns.find(text), keepFrom, keepFrom)
  }

  /**
   * Returns what is held back, because nothing follows soon. Masks the beginning of a secret as if it were complete,
   * unless it has fewer than 4 characters; its rest is masked if it still arrives.
   */
  flush(): string {
    const text = this.#held
    const patterns = this.#masks.patterns
    const keepFrom = patterns.beginning(text)
    const found = patterns.find(text)
    if (text.length - keepFrom >= SHORTEST_MASKED) found.push({ start: keepFrom, end: text.length })
    return this.#emit(text, merge(found), text.length, keepFrom)
  }

  /** Gives `text` out up to `end`, and holds it from `keepFrom` on. */
  #emit(text: string, found: readonly Span[], end: number, keepFrom: number): string {
    let out = ''
    let at = this.#emitted
    let masked = this.#masked
    for (const span of found) {
      if (span.end <= at) continue
      if (span.start >= end) break
      // A span that continues a masked one is the same secret.
      const continues = masked && span.start < at
      out += text.slice(at, Math.max(span.start, at)) + (continues ? '' : MASK)
      at = span.end
      masked = true
    }
    if (at < end) {
      out += text.slice(at, end)
      at = end
      masked = false
    }
    this.#held = text.slice(keepFrom)
    this.#emitted = Math.max(at - keepFrom, 0)
    this.#masked = this.#emitted > 0 && masked
    return out
  }
}

/** Sorts spans and joins those that overlap. */
function merge(spans: Span[]): Span[] {
  const merged: Span[] = []
  for (const span of spans.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last !== undefined && span.start < last.end) last.end = Math.max(last.end, span.end)
    else merged.push({ ...span })
  }
  return merged
}

/** Returns the lines of a value; itself if it has one. */
const linesOf = (value: string): string[] => value.split(/\r\n|[\r\n]/)

const costOf = (value: string): number => value.length + LINE_COST * linesOf(value).length

/** Returns the forms in which a value shows up in output. */
function variantsOf(value: string): string[] {
  const lines = linesOf(value).map((line) => line.trim())
  return (
    [...new Set([value, value.trim(), ...lines])]
      .filter((text) => text.length >= SHORTEST_MASKED)
      .flatMap((text) => [text, ...escapes(text), ...base64Forms(text)])
      // A mask that swallowed the end of a line would join it with the next.
      .filter((text) => !/[\r\n]/.test(text))
  )
}

/** Matches a text that JSON, URLs and forms have as it is. Most lines of a long value are such, and need no more time. */
const PLAIN = /^[\w.-]*$/

function escapes(text: string): string[] {
  if (PLAIN.test(text)) return []
  const json = JSON.stringify(text).slice(1, -1)
  const url = encodeUrl(text)
  const lower = url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())
  const form = new URLSearchParams([['', text]]).toString().slice(1)
  return [json, json.replaceAll('/', '\\/'), url, lower, form]
}

function encodeUrl(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    // Half of a surrogate pair has no form in a URL.
    return text
  }
}

/**
 * Returns a value's base64, alone and inside a longer text (`user:password`), where only the characters that do not
 * depend on the neighbours are known; in both alphabets.
 */
function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text)
  const alone = bytes.toString('base64').replace(/=+$/, '')
  const forms = [alone]
  if (bytes.length >= SHORTEST_INSIDE) {
    const padded = Buffer.concat([Buffer.alloc(2), bytes])
    for (const shift of [0, 1, 2]) {
      const length = shift + bytes.length
      const known = padded.toString('base64', 2 - shift, 2 - shift + length - (length % 3))
      const form = known.slice(shift === 0 ? 0 : shift + 1)
      if (form.length >= SHORTEST_INNER) forms.push(form)
    }
  }
  return forms.flatMap((form) =>
    /[+/]/.test(form) ? [form, form.replaceAll('+', '-').replaceAll('/', '_')] : [form],
  )
}
