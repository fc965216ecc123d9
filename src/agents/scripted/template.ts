import { ToolError } from '../workbench/errors.ts'

/** A text with places for values, by their names. */
export type Template = readonly (string | ValuePlace)[]

/** Where a value goes. */
interface ValuePlace {
  readonly value: string
  /** In a command: whether the place stands inside double quotes. */
  readonly quoted?: boolean
}

/** A shell command with places for values. */
export interface CommandTemplate {
  readonly pieces: Template
  /** It as it was written. */
  readonly text: string
}

/** Which values there are, and whether another name is refused or stays as it stands. */
export interface KnownValues {
  readonly names: ReadonlySet<string>
  readonly others: 'refused' | 'kept'
}

/** `{{name}}`, and with a backslash before it the braces themselves. */
const PLACE = /(\\?)\{\{ *([A-Za-z_]\w*) *\}\}/g

/** Bytes of a command with its values: Linux takes 128 KiB as one argument. */
const MOST_IN_COMMAND = 100_000

/**
 * Reads a text in which `{{name}}` stands for a value.
 *
 * @throws Error, whose message says what was expected, for a name that there is not
 */
export function parseTemplate(text: string, known: KnownValues): Template {
  return parse(text, known, ({ name }) => ({ value: name }))
}

/**
 * Reads a shell command in which `{{name}}` stands for a value. The value is never part of the command's text: it is
 * put into a variable, whose expansion stands in the place, so that no shell reads what is in it.
 *
 * @throws Error, whose message says what was expected, for a name that there is not and one inside single quotes
 */
export function parseCommand(text: string, known: KnownValues): CommandTemplate {
  const pieces = parse(text, known, ({ name, before }) => {
    const quote = openQuote(before)
    if (quote === "'") {
      throw new Error(
        `expected {{${name}}} outside of single quotes, in which a shell puts in nothing; use double quotes`,
      )
    }
    return { value: name, quoted: quote === '"' }
  })
  return { pieces, text }
}

/** The text with its values. */
export const fill = (template: Template, values: ReadonlyMap<string, string>): string =>
  template.map((piece) => (typeof piece === 'string' ? piece : (values.get(piece.value) ?? ''))).join('')

/**
 * The command with its values: assignments of shell variables, then the command that uses them.
 *
 * @throws ToolError where the values are longer than a command can be
 */
export function fillCommand({ pieces }: CommandTemplate, values: ReadonlyMap<string, string>): string {
  const used = new Set<string>()
  const command = pieces.map((piece) => {
    if (typeof piece === 'string') return piece
    used.add(piece.value)
    const expansion = `\${${variableOf(piece.value)}}`
    return piece.quoted ? expansion : `"${expansion}"`
  })
  const assignments = [...used].map(
    (name) => `${variableOf(name)}='${(values.get(name) ?? '').replaceAll("'", "'\\''")}'\n`,
  )
  const text = [...assignments, ...command].join('')
  if (used.size > 0 && Buffer.byteLength(text) > MOST_IN_COMMAND) {
    throw new ToolError(
      `The values of ${[...used].join(', ')} are too long for a command: ${MOST_IN_COMMAND} bytes at most. Write them to a file.`,
    )
  }
  return text
}

/** A prefix of its own: a value that is called PATH must not change where programs are found. */
const variableOf = (name: string): string => `VALUE_${name}`

function parse(
  text: string,
  { names, others }: KnownValues,
  place: (found: { name: string; before: string }) => ValuePlace,
): Template {
  const pieces: (string | ValuePlace)[] = []
  let end = 0
  for (const { 0: whole, 1: backslash, 2: name = '', index } of text.matchAll(PLACE)) {
    const isKnown = names.has(name)
    if (!isKnown && others === 'kept') continue
    if (!isKnown && backslash === '') throw new Error(unknownName(name, names))
    const before = text.slice(0, index)
    pieces.push(text.slice(end, index), backslash === '' ? place({ name, before }) : whole.slice(1))
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
 * The quote that is open at the end of a piece of a shell command; one around a `$(…)` that is open does not count. A
 * here-document or an apostrophe in a comment may mislead it: what is put in is then split, or stands there with its
 * quotes, but is never run.
 */
function openQuote(text: string): '"' | "'" | null {
  const open: ('"' | "'" | '(')[] = []
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    const last = open.at(-1)
    if (last === "'") {
      if (character === "'") open.pop()
    } else if (character === '\\') at++
    else if (character === '"' && last === '"') open.pop()
    else if (character === '"' || (character === "'" && last !== '"')) open.push(character)
    else if (text.startsWith('$(', at)) open.push('(')
    else if (character === ')' && last === '(') open.pop()
  }
  const last = open.at(-1)
  return last === '(' ? null : (last ?? null)
}
