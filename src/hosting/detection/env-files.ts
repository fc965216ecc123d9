import { fieldsOf, isObject } from '../../runtime/is-object.ts'
import type { EnvRequirement, GeneratedSecret } from '../app-runtime/plan.ts'
import type { SourceDirectory } from './source.ts'

const EXAMPLES = ['.env.example', '.env.sample', '.env.template', '.env.dist']

/** Files that frameworks and runtimes read by themselves when an app is in production. */
const READ = ['.env', '.env.production', '.env.local', '.env.production.local', '.flaskenv']

/** Matches the files of variables that a command names: the value of an option, or a name as of such a file. */
const NAMED =
  /--env-file(?:-if-exists)?[\s=]+["']?([^\s"'&;|]+)|(?<![\w./-])((?:[\w.-]+\/)*(?:\.env(?:\.[\w-]+)*|[\w-]+\.env))(?![\w./-])/g

/** Matches the mode that a command of Vite and its like is given, which names further files. */
const MODE = /--mode[\s=]+["']?([\w-]+)/g

/** Most files that are named by commands and read. @bound reader */
const MAX_NAMED = 20

/** Variables that berth sets for every app. */
const SET_BY_BERTH = ['PORT', 'HOST', 'NODE_ENV', 'BERTH_URL']

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/
/** Matches a comment on a variable that may be left without a value. */
const OPTIONAL =
  /\boptional(?:ly)?\b|\(default\b|\bdefault:|\bdefaults? (?:to|is)\b|\bleave (?:it |this )?empty\b/i
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Returns the variables that an app asks for. The manifest's take precedence over app.json's, and those over an
 * example file's. One that the app's own files give a value is left to them.
 *
 * @param secrets those that berth makes
 * @param commands what builds and starts the app, which may name such files
 */
export async function findVariables(
  app: SourceDirectory,
  manifest: Readonly<Record<string, EnvRequirement>>,
  secrets: Readonly<Record<string, GeneratedSecret>>,
  commands: readonly string[],
): Promise<Record<string, EnvRequirement>> {
  const example = parseExample(await app.textOf(...EXAMPLES))
  const asked = Object.entries(example).filter(([, { required }]) => required)
  const given = asked.length === 0 ? new Set() : await namesWithDefault(app)
  for (const [name, known] of asked) if (given.has(name)) example[name] = { ...known, required: false }
  const all = { ...example, ...(await appJson(app)), ...manifest }
  for (const [name, generated] of Object.entries(secrets)) {
    const known = all[name] ?? { description: null, default: null }
    if (known.default === null) all[name] = { ...known, required: true, generated }
  }
  for (const file of [...READ, ...(await namedFiles(app, commands))]) {
    // The app reads it itself. The plan leaves its values unset, as they would be hidden by variables of the process.
    const own = parseExample(await app.textOf(file))
    for (const [name, { default: value }] of Object.entries(own)) {
      const known = all[name]
      if (known !== undefined && value !== null) all[name] = { ...known, required: false, default: null }
    }
  }
  for (const name of SET_BY_BERTH) {
    const stated = manifest[name]
    delete all[name]
    if (stated !== undefined) all[name] = { ...stated, required: false }
  }
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Most files of code that are read for how they read variables. @bound peer */
const MAX_CODE = 300

/** Matches how code reads a variable and says what is taken without one, in Python, Ruby, PHP and JavaScript. */
const WITH_DEFAULT =
  /(?:getenv|environ\.get|ENV\.fetch|\benv)\(\s*["'](\w+)["']\s*,|\benv\.(\w+)\s*(?:\?\?|\|\|)|\b(?:env|ENV)\[["'](\w+)["']\]\s*(?:\?\?|\|\|)/g

/** Returns the variables for which the code itself has a default. */
async function namesWithDefault(app: SourceDirectory): Promise<Set<string>> {
  const files = app.files.filter((path) => /\.(?:py|rb|php|[cm]?[jt]sx?)$/.test(path)).slice(0, MAX_CODE)
  const names = new Set<string>()
  for (const file of files)
    for (const [, ...found] of (await app.code(file)).matchAll(WITH_DEFAULT))
      names.add(found.find((name) => name !== undefined) ?? '')
  return names
}

/** Returns the files of variables that commands, and scripts of package.json, name. */
async function namedFiles(app: SourceDirectory, commands: readonly string[]): Promise<string[]> {
  const { scripts } = fieldsOf(await app.tables('package.json'))
  const text = [...commands, ...Object.values(fieldsOf(scripts))].join('\n')
  const named = [...text.matchAll(NAMED)].map(([, option, name]) => option ?? name ?? '')
  const modes = [...text.matchAll(MODE)].flatMap(([, mode]) => [`.env.${mode}`, `.env.${mode}.local`])
  return [...new Set([...named, ...modes])].filter((file) => !EXAMPLES.includes(file)).slice(0, MAX_NAMED)
}

/**
 * Parses a file of example variables. A value is the default; a variable without one is required, unless the comment
 * above says that it is optional or has a default. The comment lines directly above a variable describe it.
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
      const optional = OPTIONAL.test(description)
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
  const { env } = fieldsOf(await app.tables('app.json'))
  return Object.fromEntries(
    Object.entries(fieldsOf(env)).flatMap(([name, entry]): Array<[string, EnvRequirement]> => {
      if (!NAME.test(name)) return []
      if (typeof entry === 'string') return [[name, { required: false, description: null, default: entry }]]
      if (!isObject(entry)) return []
      const { value, required, description, generator } = entry
      const given = typeof value === 'string' ? value : null
      return [
        [
          name,
          {
            required: required !== false && given === null,
            description: typeof description === 'string' ? description : null,
            default: given,
            ...(generator === 'secret' && given === null ? { generated: 'hex' as const } : {}),
          },
        ],
      ]
    }),
  )
}
