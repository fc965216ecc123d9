import { type JsonPath, repeatedName, ValidationError } from './validation-error.ts'

/**
 * Deepest nesting of arrays and objects in a JSON text (RFC 8259, 9). Parsers and validators descend level by level, so
 * a small text could otherwise keep the service busy for seconds and take hundreds of megabytes.
 * @bound client
 */
export const MAX_JSON_DEPTH = 64

/** A place of a JSON text that is nested too deeply, or that `JSON.parse` reads and does not keep. */
interface JsonFault {
  readonly offset: number
  /** Describes what would be lost; null if the text is nested too deeply. */
  readonly loss: ValidationError | null
}

const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const LOWER_E = 0x65
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Characters up to which a number without an exponent is kept: a double has more digits. */
const SAFE_LENGTH = 15

/**
 * Finds the first place that is nested too deeply, or else the first that `JSON.parse` would change silently: a field
 * whose name its object has already (RFC 8259, 4), or a number whose digits no double has (RFC 7493, 2.2).
 *
 * The text is read once, and only the names of open objects are kept. It need not be valid.
 */
export const findJsonFault = (text: string): JsonFault | null => scan(text, []).fault

/** Reports whether a text is nested more than `MAX_JSON_DEPTH` levels. Brackets in strings do not count. */
export const isTooDeep = (text: string): boolean => scan(text, null).fault?.loss === null

/**
 * Parses a JSON text of at most `MAX_JSON_DEPTH` levels, and finds what is lost by that. A text that loses nothing takes
 * little longer than `JSON.parse` alone: it has as many names as its value.
 *
 * @returns null if it is nested too deeply
 * @throws SyntaxError if it is malformed
 */
export function parseWithLoss(text: string): { value: unknown; loss: ValidationError | null } | null {
  const { fault, names } = scan(text, null)
  if (fault?.loss === null) return null
  const value: unknown = JSON.parse(text)
  const isWhole = fault === null && countNames(value) === names
  return { value, loss: isWhole ? null : (findJsonFault(text)?.loss ?? null) }
}

/** Counts the fields of all objects in a value. */
function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const one of value) count += countNames(one)
    return count
  }
  // The objects of `JSON.parse` inherit no names. A list of each one's would take as long as parsing.
  for (const name in value) count += 1 + countNames((value as Record<string, unknown>)[name])
  return count
}

/** What one reading of a text finds. */
interface Scan {
  readonly fault: JsonFault | null
  /** Number of fields, those with the same name included, if the text is valid. */
  readonly names: number
}

/**
 * Reads a text up to its end, or to where it is nested too deeply.
 *
 * @param levels where to note names and places; without it repeated names are not found, and other faults have no path
 */
function scan(text: string, levels: Level[] | null): Scan {
  let depth = 0
  let names = 0
  let expectsName = false
  let fault: JsonFault | null = null
  const path = (): JsonPath => levels?.slice(0, depth).map(({ step }) => step) ?? []
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      if (expectsName && fault === null && levels?.[depth - 1]?.add(decoded(text.slice(at + 1, end)))) {
        fault = { offset: at, loss: repeatedName(path()) }
      }
      expectsName = false
      at = end
    } else if (code === COLON) {
      names += 1
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (depth === MAX_JSON_DEPTH) return { fault: { offset: at, loss: null }, names }
      if (levels !== null) {
        expectsName = code === OPEN_OBJECT
        const level = levels[depth] ?? new Level()
        levels[depth] = level
        level.open(expectsName)
      }
      depth += 1
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      depth = Math.max(0, depth - 1)
      expectsName = false
    } else if (code === COMMA) {
      expectsName = levels?.[depth - 1]?.next() ?? false
    } else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at)
      const expected: string | null = fault === null ? expectedNumber(text, at, end) : null
      if (expected !== null) fault = { offset: at, loss: inexact(path(), expected, text.slice(at, end)) }
      at = end - 1
    }
  }
  return { fault, names }
}

/** An object or an array that is open. It is used again for the next one at its depth. */
class Level {
  /** The name or the index of the current value. */
  step: string | number = 0
  #isObject = false
  #first: string | null = null
  /** The names of an object that has more than one. */
  readonly #names = new Set<string>()

  open(isObject: boolean): void {
    this.#isObject = isObject
    this.step = 0
    this.#first = null
    if (this.#names.size > 0) this.#names.clear()
  }

  /** Goes on to the next value. Returns whether its name comes first. */
  next(): boolean {
    if (typeof this.step === 'number') this.step += 1
    return this.#isObject
  }

  /** Adds the name of a field. Returns whether there is one already. */
  add(name: string): boolean {
    this.step = name
    if (this.#first === null) {
      this.#first = name
      return false
    }
    if (this.#names.size === 0) this.#names.add(this.#first)
    const { size } = this.#names
    return this.#names.add(name).size === size
  }
}

/** Returns the end of the string that begins at a quote: the next quote that is not escaped. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Returns a name with its escapes resolved, unless they are malformed. */
function decoded(name: string): string {
  if (!name.includes('\\')) return name
  try {
    return JSON.parse(`"${name}"`)
  } catch {
    return name
  }
}

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE

/** Reports whether a character is the `e` of an exponent, in either case. */
const isExponent = (code: number): boolean => (code | 0x20) === LOWER_E

function endOfNumber(text: string, start: number): number {
  let end = start + 1
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end)
    if (!isDigit(code) && code !== POINT && code !== PLUS && code !== MINUS && !isExponent(code)) break
  }
  return end
}

/** Returns what would be kept in place of the number at these offsets, in words; null if it is kept itself. */
function expectedNumber(text: string, start: number, end: number): string | null {
  if (end - start <= SAFE_LENGTH) {
    let at = start
    while (at < end && !isExponent(text.charCodeAt(at))) at += 1
    if (at === end) return null
  }
  return keptInstead(text.slice(start, end))
}

/** Reports whether a number in decimal notation keeps its value as a double; a fraction may be rounded. */
export const isKeptNumber = (token: string): boolean => keptInstead(token) === null

const WHOLE = `a whole number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}, or a string`

const FINITE = `a number from ${Number.MIN_VALUE} to ${Number.MAX_VALUE} or their negatives, or a string`

const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

function keptInstead(token: string): string | null {
  const value = Number(token)
  if (Number.isSafeInteger(value) && value !== 0) return null
  const [, whole, fraction = '', exponent = ''] = NUMBER.exec(token) ?? []
  // A malformed number is a matter of the parser.
  if (whole === undefined) return null
  if (fraction === '' && exponent === '') return value === 0 ? null : WHOLE
  if (!Number.isFinite(value)) return FINITE
  if (value === 0) return /[1-9]/.test(whole + fraction) ? FINITE : null
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return null
  return scientific(token) === scientific(String(value)) ? null : WHOLE
}

/** Returns the digits of a number without zeros at either end, and its exponent. Equal numbers have equal texts. */
function scientific(number: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(number) ?? []
  const digits = whole + fraction
  let start = 0
  while (digits[start] === '0') start += 1
  let end = digits.length
  while (end > start && digits[end - 1] === '0') end -= 1
  return `${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

function inexact(path: JsonPath, expected: string, token: string): ValidationError {
  const quoted = token.length > 80 ? `${token.slice(0, 77)}…` : token
  return new ValidationError(path, `expected ${expected}, got ${quoted}.`)
}
