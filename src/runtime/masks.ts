import { Patterns, SHORTEST_PATTERN, type Span } from './patterns.ts'

/** Values shorter than this are not masked: they would blot out half of every log. */
export const SHORTEST_MASKED = SHORTEST_PATTERN

/** Shortest base64 of a value's inner part that is looked for: a shorter one occurs by chance. */
const SHORTEST_INNER = 8

/** What stands in place of a secret. */
export const MASK = '***'

/**
 * The values that a log must not show: each as it is, line by line where it has several, and as JSON, URLs and
 * base64 write it. Values are only added: a process that was given an old one may still print it.
 */
export class Masks {
  readonly #values = new Set<string>()
  #patterns = new Patterns([])

  /** Hides these values from now on. Those shorter than 4 characters are left alone. */
  add(values: Iterable<string>): void {
    const before = this.#values.size
    for (const value of values) this.#values.add(value)
    if (this.#values.size === before) return
    this.#patterns = new Patterns([...this.#values].flatMap(variantsOf))
  }

  /** The texts that are hidden: values and their other forms. */
  get patterns(): Patterns {
    return this.#patterns
  }

  /** A whole text with `***` for every secret in it. */
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

  /** The first characters of a text, masked; so is a secret that goes on behind them. */
  beginning(text: string, length: number): string {
    if (text.length <= length) return this.mask(text)
    const stream = this.stream()
    return stream.push(text.slice(0, length)) + stream.flush()
  }

  /** Masks a text that comes in pieces. */
  stream(): MaskStream {
    return new MaskStream(this)
  }
}

/**
 * Masks a text that comes in pieces, a secret that is cut into several included. The end of a piece is held back
 * where it may be the beginning of a secret: less than the longest one's length.
 */
export class MaskStream {
  readonly #masks: Masks
  /** The end of what came so far, as far as a secret may begin in it. */
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

  /** Takes the next piece; returns what is sure by now. */
  push(piece: string): string {
    const text = this.#held + piece
    const patterns = this.#masks.patterns
    const keepFrom = patterns.beginning(text)
    return this.#emit(text, patterns.find(text), keepFrom, keepFrom)
  }

  /**
   * Gives out what is held back: nothing more comes for a while, or ever. The beginning of a secret is masked as if it
   * were whole, but for one of less than 4 characters; the rest of it is masked if it still comes.
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
      // One that continues what was masked already is the same secret.
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

/** Spans in order, those that overlap as one. */
function merge(spans: Span[]): Span[] {
  const merged: Span[] = []
  for (const span of spans.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last !== undefined && span.start < last.end) last.end = Math.max(last.end, span.end)
    else merged.push({ ...span })
  }
  return merged
}

/** The forms in which a value shows up in output. */
function variantsOf(value: string): string[] {
  const lines = value.split(/\r\n|[\r\n]/).map((line) => line.trim())
  return (
    [value, value.trim(), ...lines]
      .filter((text) => text.length >= SHORTEST_MASKED)
      .flatMap((text) => [text, ...escapes(text), ...base64Forms(text)])
      // A mask that swallowed the end of a line would join it with the next.
      .filter((text) => !/[\r\n]/.test(text))
  )
}

function escapes(text: string): string[] {
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
 * A value's base64, alone and as a part of a longer text (`user:password`), of which only what the neighbours do not
 * change is known; in both alphabets.
 */
function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text)
  const alone = bytes.toString('base64').replace(/=+$/, '')
  const inner = [0, 1, 2].map((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), bytes])
    const known = padded.subarray(0, padded.length - (padded.length % 3)).toString('base64')
    return known.slice(shift === 0 ? 0 : shift + 1)
  })
  const forms = [alone, ...inner.filter((form) => form.length >= SHORTEST_INNER)]
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
}
