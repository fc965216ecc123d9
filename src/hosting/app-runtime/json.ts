import { AppError } from './plan.ts'

const WORD = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const SPACE = /[ \t\r\n]*/y

/**
 * Parses a JSON file.
 *
 * @throws AppError that names the file, the line and what was expected there, which JSON.parse does not
 */
export function parseJson(file: string, text: string): unknown {
  const json = text.replace(/^\uFEFF/, '')
  try {
    return JSON.parse(json)
  } catch {
    const { at, expected } = new Scanner(json).findFault()
    const line = json.slice(0, at).split('\n').length
    const rest = json.slice(at).split('\n', 1)[0] ?? ''
    const found = rest.trim() === '' ? 'the end of the line' : JSON.stringify(rest.slice(0, 30))
    throw new AppError(
      `${file}, line ${line}: expected ${expected}, got ${found}. The file must be valid JSON.`,
    )
  }
}

/** The place of the first mistake in a text. */
interface Fault {
  at: number
  expected: string
}

/** Walks through JSON up to its first fault. Only for texts that have one: it builds nothing. */
class Scanner {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  findFault(): Fault {
    const open: Array<'{' | '['> = []
    let fault = this.#value(open)
    while (fault === null) {
      this.#skip(SPACE)
      const within = open.at(-1)
      if (within === undefined) return this.#fault('nothing more')
      const close = within === '{' ? '}' : ']'
      if (this.#skip(close)) open.pop()
      else if (this.#skip(',')) fault = within === '{' ? this.#member(open) : this.#value(open)
      else return this.#fault(`"," or "${close}"`)
    }
    return fault
  }

  /** Reads a value, or the beginning of an object or a list. */
  #value(open: Array<'{' | '['>): Fault | null {
    this.#skip(SPACE)
    if (this.#skip('{')) {
      this.#skip(SPACE)
      open.push('{')
      return this.#text[this.#at] === '}' ? null : this.#member(open)
    }
    if (this.#skip('[')) {
      this.#skip(SPACE)
      open.push('[')
      return this.#text[this.#at] === ']' ? null : this.#value(open)
    }
    return this.#skip(STRING) || this.#skip(WORD) ? null : this.#fault('a value')
  }

  #member(open: Array<'{' | '['>): Fault | null {
    this.#skip(SPACE)
    if (!this.#skip(STRING)) return this.#fault('a name in double quotes')
    this.#skip(SPACE)
    return this.#skip(':') ? this.#value(open) : this.#fault('":"')
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
