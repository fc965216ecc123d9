import { AgentError } from '../agent.ts'
import { ToolError } from '../workbench/search.ts'

/** A text, or a shell command, with placeholders for values. */
export type Template = readonly (string | Placeholder)[]

/** A placeholder for a value, by name. */
interface Placeholder {
  readonly value: string
  /** In a command: whether it is inside double quotes. */
  readonly quoted?: boolean
}

/** The names of the values, and whether to refuse or keep placeholders with other names. */
export interface KnownValues {
  readonly names: ReadonlySet<string>
  readonly unknown: 'refused' | 'kept'
}

/** `{{name}}`, and with a backslash before it the braces themselves. */
const PLACEHOLDER = /(\\?)\{\{ *([A-Za-z_]\w*) *\}\}/g

/** Most bytes of a command with its values. Linux takes 128 KiB as one argument. @bound system */
const MAX_COMMAND = 100_000

/**
 * Most characters of another text with its values. One value in many placeholders could fill the memory.
 * @bound program
 */
const MAX_TEXT = 16 * 1024 * 1024

/**
 * Parses a text with `{{name}}` for values.
 *
 * @throws Error for an unknown name; the message says what was expected
 */
export function parseTemplate(text: string, known: KnownValues): Template {
  return parse(text, known, ({ name }) => ({ value: name }))
}

/**
 * Parses a shell command with `{{name}}` for values. A value never becomes part of the command's text: it is assigned
 * to a variable, whose expansion replaces the placeholder, so no shell interprets it.
 *
 * @throws Error for an unknown name, or one inside single quotes; the message says what was expected
 */
export function parseCommand(text: string, known: KnownValues): Template {
  const quotes = new Quotes(text)
  return parse(text, known, ({ name, index }) => {
    const quote = quotes.openAt(index)
    if (quote === "'") {
      throw new Error(
        `expected {{${name}}} outside of single quotes, in which a shell puts in nothing; use double quotes`,
      )
    }
    return { value: name, quoted: quote === '"' }
  })
}

/** Returns the text with its values. @throws AgentError if it is too long */
export function fillTemplate(template: Template, values: ReadonlyMap<string, string>): string {
  const texts = template.map((piece) => (typeof piece === 'string' ? piece : (values.get(piece.value) ?? '')))
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  if (length <= MAX_TEXT) return texts.join('')
  throw new AgentError(
    `A text of a step has ${length} characters with its values; ${MAX_TEXT} is the most. Put long values into fewer places.`,
  )
}

/**
 * Returns the command with its values: assignments of shell variables, then the command that uses them.
 *
 * @throws ToolError if the values are longer than a command can be
 */
export function fillCommand(template: Template, values: ReadonlyMap<string, string>): string {
  const used = new Set<string>()
  const command = template.map((piece) => {
    if (typeof piece === 'string') return piece
    used.add(piece.value)
    const expansion = `\${${variableOf(piece.value)}}`
    return piece.quoted ? expansion : `"${expansion}"`
  })
  const assignments = [...used].map(
    (name) => `${variableOf(name)}='${(values.get(name) ?? '').replaceAll("'", "'\\''")}'\n`,
  )
  const text = [...assignments, ...command].join('')
  if (used.size > 0 && Buffer.byteLength(text) > MAX_COMMAND) {
    throw new ToolError(
      `The values of ${[...used].join(', ')} are too long for a command: ${MAX_COMMAND} bytes at most. Write them to a file.`,
    )
  }
  return text
}

/**
 * Returns the shell variable of a value. The prefix keeps a value called PATH from changing where programs are found.
 */
const variableOf = (name: string): string => `VALUE_${name}`

/** Splits a text into its literal parts and its placeholders. @throws Error for a placeholder of an unknown value */
function parse(
  text: string,
  { names, unknown }: KnownValues,
  toPlaceholder: (found: { name: string; index: number }) => Placeholder,
): Template {
  const pieces: (string | Placeholder)[] = []
  let end = 0
  for (const { 0: whole, 1: backslash, 2: name = '', index } of text.matchAll(PLACEHOLDER)) {
    const isKnown = names.has(name)
    if (!isKnown && unknown === 'kept') continue
    if (!isKnown && backslash === '') throw new Error(unknownName(name, names))
    pieces.push(text.slice(end, index), backslash === '' ? toPlaceholder({ name, index }) : whole.slice(1))
    end = index + whole.length
  }
  pieces.push(text.slice(end))
  return pieces.filter((piece) => piece !== '')
}

function unknownName(name: string, names: ReadonlySet<string>): string {
  const known = names.size === 0 ? 'there is none here' : `known here: ${[...names].join(', ')}`
  return `expected {{…}} with the name of a value (${known}), or \\{{${name}}} for the braces themselves`
}

/**
 * Tracks which quote is open at a place in a shell command; one around an open `$(…)` does not count. A here-document
 * or an apostrophe in a comment may mislead it: then a value is split, or keeps its quotes, but never runs.
 */
class Quotes {
  readonly #text: string
  readonly #open: ('"' | "'" | '(')[] = []
  #index = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Returns the quote that is open before `index`, which grows from call to call: a goal may have many places. */
  openAt(index: number): '"' | "'" | null {
    for (; this.#index < index; this.#index++) this.#readCharacter()
    const last = this.#open.at(-1)
    return last === '(' ? null : (last ?? null)
  }

  #readCharacter(): void {
    const open = this.#open
    const character = this.#text[this.#index]
    const last = open.at(-1)
    if (last === "'") {
      if (character === "'") open.pop()
    } else if (character === '\\') this.#index++
    else if (character === '"' && last === '"') open.pop()
    else if (character === '"' || (character === "'" && last !== '"')) open.push(character)
    else if (this.#text.startsWith('$(', this.#index)) open.push('(')
    else if (character === ')' && last === '(') open.pop()
  }
}
