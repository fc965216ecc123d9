import { findJsonFault, MAX_JSON_DEPTH } from './json-faults.ts'
import { type JsonPath, listMistakes, type ValidationError } from './validation-error.ts'

const WORD = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings.
const PLAIN = /[^"\\\u0000-\u001f]+/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const SPACE = /[ \t\r\n]*/y

/** Reports that a text is not JSON. The message says where and what was expected there, which `JSON.parse` does not. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError'
}

/** A place in a text; lines and columns count from 1. */
export interface TextPlace {
  readonly offset: number
  readonly line: number
  readonly column: number
}

/** A JSON text that has been parsed, with the places of its values. */
export class JsonDocument {
  readonly value: unknown
  readonly #text: string

  /**
   * Parses a text (RFC 8259). A byte order mark before it is skipped.
   *
   * @param isOwn whether the text is written for berth. Then a field that comes twice or a number that cannot be kept is
   * an error; in files of other programs, which read them in their own way, it is not
   * @throws JsonSyntaxError if it is malformed, or nested more than `MAX_JSON_DEPTH` levels
   */
  constructor(text: string, { isOwn = true } = {}) {
    this.#text = text.replace(/^\uFEFF/, '')
    const fault = findJsonFault(this.#text)
    const placed = (offset: number, reason: string): JsonSyntaxError =>
      new JsonSyntaxError(`${placeWords(placeAt(this.#text, offset))}: ${reason}`)
    if (fault !== null && fault.loss === null) {
      throw placed(fault.offset, `nested too deeply, expected at most ${MAX_JSON_DEPTH} levels.`)
    }
    try {
      this.value = JSON.parse(this.#text)
    } catch {
      const { at, expected } = new Scanner(this.#text, NOWHERE).findFault()
      const rest = this.#text.slice(at).split('\n', 1)[0] ?? ''
      const found = rest.trim() === '' ? 'the end of the line' : JSON.stringify(rest.slice(0, 30))
      throw placed(at, `expected ${expected}, got ${found}. The file must be valid JSON.`)
    }
    if (isOwn && fault?.loss) throw placed(fault.offset, fault.loss.sentence())
  }

  /** Describes all mistakes of the text, each with line and column: `line 2, column 9: "port": expected …`. */
  describe(mistake: ValidationError): string {
    const scanner = new Scanner(this.#text, Math.max(0, ...mistake.all.map(({ path }) => path.length)))
    scanner.findFault()
    return describePlaced(mistake, ({ path, kind }) => {
      const isKey = kind === 'key' || kind === 'unknown'
      return placeAt(this.#text, scanner.offsetOf(path, isKey))
    })
  }
}

/**
 * Describes mistakes in the order of their places, each with line and column. What is missing has no place of its own,
 * and is often what another name was meant to be: it comes last.
 */
export function describePlaced(
  mistake: ValidationError,
  placeOf: (mistake: ValidationError) => TextPlace,
): string {
  const rank = ({ kind }: ValidationError): number => (kind === 'missing' ? 1 : 0)
  const places = new Map(mistake.all.map((one) => [one, placeOf(one)]))
  const offsetOf = (one: ValidationError): number => places.get(one)?.offset ?? 0
  const sorted = [...places.keys()].sort((a, b) => rank(a) - rank(b) || offsetOf(a) - offsetOf(b))
  return listMistakes(sorted, (one) => {
    const words = placeWords(places.get(one) ?? { offset: 0, line: 1, column: 1 })
    const start = one === sorted[0] ? words : words.replace('line', 'Line')
    return `${start}: ${one.sentence()}`
  })
}

/** Returns a place in words: `line 3, column 12`. */
export const placeWords = ({ line, column }: TextPlace): string => `line ${line}, column ${column}`

function placeAt(text: string, offset: number): TextPlace {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { offset, line: before.split('\n').length, column: offset - start + 1 }
}

/** The place of the first fault in a text. */
interface Fault {
  at: number
  expected: string
}

/** An object or array that is being read. */
interface Container {
  close: '}' | ']'
  /** The key or index of the value that is being read. */
  step: string | number
}

/** The depth of a `Scanner` that notes no places. */
const NOWHERE = -1

/** Walks through JSON up to its first fault, and notes where keys and values begin. */
class Scanner {
  readonly #text: string
  readonly #notedDepth: number
  readonly #open: Container[] = []
  /** Offsets of values and of keys, by path. */
  readonly #values = new Map<string, number>()
  readonly #keys = new Map<string, number>()
  #at = 0

  /** @param notedDepth length of the longest path whose place is noted: a large text has millions of values */
  constructor(text: string, notedDepth: number) {
    this.#text = text
    this.#notedDepth = notedDepth
  }

  /** Walks to the first fault; in a text without one, to "nothing more" at its end. */
  findFault(): Fault {
    let fault = this.#value()
    while (fault === null) {
      this.#skip(SPACE)
      const within = this.#open.at(-1)
      if (within === undefined) return this.#fault('nothing more')
      if (this.#skip(within.close)) this.#open.pop()
      else if (this.#skip(',')) fault = this.#next(within)
      else return this.#fault(`"," or "${within.close}"`)
    }
    return fault
  }

  /** Returns where a value or its key begins; of a value that is not there, where the nearest one around it does. */
  offsetOf(path: JsonPath, isKey: boolean): number {
    const own = (isKey ? this.#keys : this.#values).get(keyOf(path))
    if (own !== undefined || path.length === 0) return own ?? 0
    return this.offsetOf(path.slice(0, -1), false)
  }

  #note(offsets: Map<string, number>, offset: number): void {
    if (this.#open.length > this.#notedDepth) return
    offsets.set(keyOf(this.#open.map(({ step }) => step)), offset)
  }

  /** Reads a value, or the beginning of an object or an array. */
  #value(): Fault | null {
    this.#skip(SPACE)
    this.#note(this.#values, this.#at)
    if (this.#skip('{')) {
      this.#skip(SPACE)
      this.#open.push({ close: '}', step: '' })
      return this.#text[this.#at] === '}' ? null : this.#member()
    }
    if (this.#skip('[')) {
      this.#skip(SPACE)
      this.#open.push({ close: ']', step: 0 })
      return this.#text[this.#at] === ']' ? null : this.#value()
    }
    return this.#skipString() || this.#skip(WORD) ? null : this.#fault('a value')
  }

  #next(within: Container): Fault | null {
    if (typeof within.step === 'string') return this.#member()
    within.step += 1
    return this.#value()
  }

  #member(): Fault | null {
    this.#skip(SPACE)
    const start = this.#at
    if (!this.#skipString()) return this.#fault('a name in double quotes')
    const within = this.#open.at(-1)
    if (within) within.step = JSON.parse(this.#text.slice(start, this.#at))
    this.#note(this.#keys, start)
    this.#skip(SPACE)
    return this.#skip(':') ? this.#value() : this.#fault('":"')
  }

  /** Skips a whole string; at anything else it stays where it is. */
  #skipString(): boolean {
    const start = this.#at
    if (!this.#skip('"')) return false
    while (this.#skip(PLAIN) || this.#skip(ESCAPE));
    if (this.#skip('"')) return true
    this.#at = start
    return false
  }

  #skip(what: string | RegExp): boolean {
    if (typeof what === 'string') {
      if (!this.#text.startsWith(what, this.#at)) return false
      this.#at += what.length
      return true
    }
    what.lastIndex = this.#at
    const found = what.exec(this.#text)
    if (found !== null) this.#at = what.lastIndex
    return found !== null
  }

  #fault(expected: string): Fault {
    return { at: this.#at, expected }
  }
}

const keyOf = (path: JsonPath): string => JSON.stringify(path)
