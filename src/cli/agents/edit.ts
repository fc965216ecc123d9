import type { ParseError } from 'jsonc-parser'
import { isObject } from '../../runtime/is-object.ts'
import { CommandError } from '../errors.ts'
import type { McpHost, Setting } from './hosts.ts'

/** Berth's entry in a configuration file. */
export type Entry = Readonly<Record<string, Setting>>

/**
 * Returns berth's entry in a configuration file; null if there is none.
 *
 * @param file its path, for errors
 * @throws CommandError if the text has another format
 */
export async function readAgentEntry(text: string, host: McpHost, file: string): Promise<Entry | null> {
  let at: unknown = await parse(text, host, file)
  for (const key of host.path) at = isObject(at) ? at[key] : undefined
  return isObject(at) ? (at as Entry) : null
}

/**
 * Returns the text with the fields of the entry set. Everything else stays as it is, other fields of the entry,
 * comments and spaces included.
 *
 * @throws CommandError if the text has another format, or cannot be changed safely
 */
export async function writeEntry(text: string, entry: Entry, host: McpHost, file: string): Promise<string> {
  await parse(text, host, file)
  return host.format === 'toml' ? writeToml(text, entry, host, file) : writeJson(text, entry, host)
}

/**
 * Returns the text without berth's entry.
 *
 * @throws CommandError if the text has another format
 */
export async function removeAgentEntry(text: string, host: McpHost, file: string): Promise<string> {
  if ((await readAgentEntry(text, host, file)) === null) return text
  if (host.format === 'toml') {
    const table = findTable(text, host)
    const removed = table && withoutTable(text, table)
    const isSafe =
      removed !== null &&
      isOnlyEntryRemoved(text, removed, host) &&
      (await readAgentEntry(removed, host, file)) === null
    if (!isSafe) throw notSafe(file, `Remove ${host.path.join('.')} from it yourself.`)
    return removed
  }
  const { applyEdits, modify } = await import('jsonc-parser')
  return applyEdits(text, modify(text, [...host.path], undefined, { formattingOptions: indentOf(text) }))
}

/** Reports whether a text has nothing but what "writeEntry" puts around an entry. */
export function isEmptyOf(text: string, { format, path }: McpHost): boolean {
  const bare = text.replace(/\s/g, '')
  if (format === 'toml') return bare === ''
  const around = path.slice(0, -1).reduceRight<object>((inner, key) => ({ [key]: inner }), {})
  return bare === '{}' || bare === JSON.stringify(around)
}

async function parse(text: string, { format }: McpHost, file: string): Promise<unknown> {
  if (text.trim() === '') return {}
  const refuse = (line: string, cause: string): never => {
    throw new CommandError(
      `${file} is no ${format.toUpperCase()}${line}: ${cause}. It is unchanged; fix it first.`,
    )
  }
  if (format === 'toml') {
    try {
      return Bun.TOML.parse(text)
    } catch (error) {
      return refuse('', error instanceof Error ? error.message : String(error))
    }
  }
  const { parse: parseJson, printParseErrorCode } = await import('jsonc-parser')
  const errors: ParseError[] = []
  const value: unknown = parseJson(text, errors, { allowTrailingComma: true })
  const [first] = errors
  if (first) {
    const line = text.slice(0, first.offset).split('\n').length
    return refuse(` in line ${line}`, printParseErrorCode(first.error))
  }
  return isObject(value) ? value : refuse('', 'expected an object')
}

async function writeJson(text: string, entry: Entry, host: McpHost): Promise<string> {
  const { applyEdits, modify } = await import('jsonc-parser')
  let changed = text.trim() === '' ? '{}\n' : text
  for (const [name, value] of Object.entries(entry)) {
    const edits = modify(changed, [...host.path, name], value, { formattingOptions: indentOf(changed) })
    changed = applyEdits(changed, edits)
  }
  return changed
}

/** Returns how a JSON text is indented. */
function indentOf(text: string): { insertSpaces: boolean; tabSize: number; eol: string } {
  const [, indent = '  '] = /^([\t ]+)\S/m.exec(text) ?? []
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol }
}

/** Sets keys of a TOML table, line by line: no library changes TOML and keeps its comments. The result is checked. */
function writeToml(text: string, entry: Entry, host: McpHost, file: string): string {
  const lines = Object.entries(entry).map(
    ([name, value]) => [name, `${name} = ${JSON.stringify(value)}`] as const,
  )
  const table = findTable(text, host)
  let changed: string
  if (table === null) {
    const before = text.trim() === '' ? '' : `${text.trimEnd()}\n\n`
    changed = `${before}[${host.path.join('.')}]\n${lines.map(([, line]) => line).join('\n')}\n`
  } else {
    let body = text.slice(table.start, table.end)
    // A new field goes right below the head, so the last one goes first.
    for (const [name, line] of lines.toReversed()) {
      const present = new RegExp(`^[ \\t]*${name}[ \\t]*=.*$`, 'm')
      // A function, because "$" in a value would mean a part of the match.
      body = present.test(body)
        ? body.replace(present, () => line)
        : body.replace(/^.*$/m, (head) => `${head}\n${line}`)
    }
    changed = text.slice(0, table.start) + body + text.slice(table.end)
  }
  if (!isOnlyEntryChanged(text, changed, entry, host)) {
    const wanted = lines.map(([, line]) => line).join(', ')
    throw notSafe(file, `Write into its [${host.path.join('.')}] yourself: ${wanted}.`)
  }
  return changed
}

const notSafe = (file: string, remedy: string): CommandError =>
  new CommandError(
    `${file} cannot be changed safely: its entry for berth is written in an unusual way. ${remedy}`,
  )

/** Where a table begins and ends in a TOML text. */
interface TableRange {
  readonly start: number
  readonly end: number
}

/** Returns where the host's table for berth begins and ends in a TOML text; null if it has no table of its own. */
function findTable(text: string, host: McpHost): TableRange | null {
  const head = new RegExp(`^\\[${host.path.join('\\.')}\\][ \\t]*(?:#.*)?$`, 'm').exec(text)
  if (head === null) return null
  const behind = head.index + head[0].length
  const next = text.slice(behind).search(/^\[/m)
  const fields = next === -1 ? text.slice(behind) : text.slice(behind, behind + next)
  // Blank lines and comments at its end stay: a comment there is often about the next table.
  return { start: head.index, end: behind + fields.replace(/(?:\r?\n[ \t]*(?:#.*)?)+$/, '').length }
}

/** Returns a TOML text without a table, and without the blank lines before the table. */
function withoutTable(text: string, { start, end }: TableRange): string {
  const before = text.slice(0, start).trimEnd()
  const behind = text.slice(end)
  return before === '' ? behind.trimStart() : before + behind
}

/** Reports whether two TOML texts mean the same but for the fields of the entry, which the second one has. */
function isOnlyEntryChanged(before: string, after: string, entry: Entry, host: McpHost): boolean {
  try {
    const [old, now] = [Bun.TOML.parse(before), Bun.TOML.parse(after)]
    return Bun.deepEquals(withEntry(old, entry, host.path), now)
  } catch {
    // The edit made it no TOML.
    return false
  }
}

/** Reports whether two TOML texts mean the same but for the entry, which the second one does not have. */
function isOnlyEntryRemoved(before: string, after: string, host: McpHost): boolean {
  try {
    const now = Bun.TOML.parse(after)
    return Bun.deepEquals(withoutEntry(Bun.TOML.parse(before), host.path), withoutEntry(now, host.path))
  } catch {
    // The edit made it no TOML.
    return false
  }
}

function withEntry(value: unknown, entry: Entry, [key, ...rest]: readonly string[]): unknown {
  const fields = isObject(value) ? value : {}
  return key === undefined
    ? { ...fields, ...entry }
    : { ...fields, [key]: withEntry(fields[key], entry, rest) }
}

/** Returns a value without what is at a path, and without the objects around it that are empty then. */
function withoutEntry(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined || !isObject(value)) return undefined
  const { [key]: inner, ...others } = value
  const left = withoutEntry(inner, rest)
  if (left !== undefined) return { ...others, [key]: left }
  return Object.keys(others).length === 0 ? undefined : others
}
