import { fieldsOf, isObject } from '../../runtime/is-object.ts'
import { readJson } from '../app-runtime/manifest.ts'
import type { EnvRequirement } from '../app-runtime/plan.ts'
import type { SourceDirectory } from './source.ts'

const EXAMPLES = ['.env.example', '.env.sample', '.env.template', '.env.dist']

/** Variables that berth sets for every app. */
const SET_BY_BERTH = ['PORT', 'HOST', 'NODE_ENV']

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Returns the variables that an app asks for. The manifest's take precedence over app.json's, and those over an
 * example file's.
 */
export async function findVariables(
  app: SourceDirectory,
  manifest: Readonly<Record<string, EnvRequirement>>,
): Promise<Record<string, EnvRequirement>> {
  const example = parseExample(await app.textOf(EXAMPLES))
  const all = { ...example, ...(await appJson(app)), ...manifest }
  // The app reads its own .env file. The plan leaves those values unset.
  const own = parseExample((await app.text('.env')) ?? '')
  for (const [name, { default: value }] of Object.entries(own)) {
    const known = all[name]
    if (known !== undefined && value !== null) all[name] = { ...known, required: false, default: null }
  }
  for (const name of SET_BY_BERTH) {
    const stated = manifest[name]
    delete all[name]
    if (stated !== undefined) all[name] = { ...stated, required: false }
  }
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Parses a file of example variables. A value is the default; a variable without one is required, unless the comment
 * above says it is optional. The comment lines directly above a variable describe it.
 */
function parseExample(text: string): Record<string, EnvRequirement> {
  const found: Record<string, EnvRequirement> = {}
  let comment: string[] = []
  for (const line of text.split(/\r?\n/)) {
    const remark = /^\s*#+\s?(.*)$/.exec(line)?.[1]
    const [, name, rest = ''] = ASSIGNMENT.exec(line) ?? []
    if (remark !== undefined) {
      // A commented-out variable does not describe the next one.
      if (ASSIGNMENT.test(remark)) comment = []
      else if (/\w/.test(remark)) comment.push(remark.trim())
      continue
    }
    if (name !== undefined) {
      const { value, note } = readValue(rest)
      const description = [...comment, ...(note === null ? [] : [note])].join(' ')
      const optional = /\boptional\b/i.test(description)
      found[name] = {
        required: value === '' && !optional,
        description: description === '' ? null : description,
        default: value === '' ? null : value,
      }
    }
    comment = []
  }
  return found
}

/** The file is an app's: a pattern that may read it in several ways would hold berth up for as long as the app likes. */
function readValue(text: string): { value: string; note: string | null } {
  const end = endOfQuoted(text)
  if (end !== -1) {
    const quoted = text.slice(1, end)
    const value = text.startsWith('"') ? quoted.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1') : quoted
    return { value, note: noteOf(text.slice(end + 1).trimStart()) }
  }
  const remark = text.search(/(?:^|\s)#/)
  if (remark === -1) return { value: text.trim(), note: null }
  return {
    value: text.slice(0, remark).trim(),
    note: text.slice(text.indexOf('#', remark) + 1).trim() || null,
  }
}

/** Returns where the quotation ends that a text begins with; -1 if there is none. */
function endOfQuoted(text: string): number {
  const quotation = text.slice(0, 1)
  if (!['"', "'", '`'].includes(quotation)) return -1
  for (let at = 1; at < text.length; at += text[at] === '\\' ? 2 : 1) if (text[at] === quotation) return at
  // No value ends with a backslash on purpose, but a path of Windows.
  return text.lastIndexOf(quotation) || -1
}

const noteOf = (text: string): string | null =>
  text.startsWith('#') ? text.replace(/^#+/, '').trim() || null : null

/** Returns the variables of a Heroku app.json. Ignores files of this name of other programs. */
async function appJson(app: SourceDirectory): Promise<Record<string, EnvRequirement>> {
  const text = await app.text('app.json')
  const { env } = fieldsOf(text === null ? null : parsed(text))
  return Object.fromEntries(
    Object.entries(fieldsOf(env)).flatMap(([name, entry]): Array<[string, EnvRequirement]> => {
      if (!NAME.test(name)) return []
      if (typeof entry === 'string') return [[name, { required: false, description: null, default: entry }]]
      if (!isObject(entry)) return []
      const { value, required, description } = entry
      const given = typeof value === 'string' ? value : null
      return [
        [
          name,
          {
            required: required !== false && given === null,
            description: typeof description === 'string' ? description : null,
            default: given,
          },
        ],
      ]
    }),
  )
}

function parsed(text: string): unknown {
  try {
    return readJson('app.json', text).value
  } catch {
    return null
  }
}
