import { fieldsOf, isObject } from '../../../runtime/is-object.ts'
import { readJson } from '../manifest.ts'
import type { EnvRequirement } from '../plan.ts'
import type { AppDirectory } from './app-directory.ts'

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
  app: AppDirectory,
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

function readValue(text: string): { value: string; note: string | null } {
  const [, quotation, quoted = '', after = ''] = /^(["'`])((?:\\.|(?!\1).)*)\1\s*(.*)$/.exec(text) ?? []
  if (quotation !== undefined) {
    const value = quotation === '"' ? quoted.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1') : quoted
    return { value, note: noteOf(after) }
  }
  const [, plain = '', note] = /^(.*?)(?:(?:^|\s)#\s*(.*))?$/.exec(text) ?? []
  return { value: plain.trim(), note: note?.trim() || null }
}

const noteOf = (text: string): string | null => /^#+\s*(.*\S)/.exec(text)?.[1] ?? null

/** Returns the variables of a Heroku app.json. Ignores files of this name of other programs. */
async function appJson(app: AppDirectory): Promise<Record<string, EnvRequirement>> {
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
