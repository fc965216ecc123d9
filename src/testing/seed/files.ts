import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import type { ContentInput } from './model.ts'

/** A file to put into a workspace. */
export interface FileSource {
  /** Path relative to the directory that the files belong to. */
  readonly path: string
  readonly bytes: () => Uint8Array
  readonly size: number
}

/** Names that a copy of a directory leaves out, because they are recreated. */
const EXCLUDED_NAMES: ReadonlySet<string> = new Set(['.git', 'node_modules', '.berth'])

/** More files are no fixtures, but a home directory or a disk that was named by mistake. */
const MAX_FILES = 20_000

/**
 * Reads the files section of a server or a project, whose shape has been checked. Lists files and directories of this
 * machine now; reads their contents when they are needed.
 *
 * @param file the fixtures file, which paths are relative to; null if no file of this machine may be read
 * @throws ValidationError for a path that leaves the workspace, is given twice, is below a file, or does not exist on
 * this machine
 */
export function readFiles(given: JsonReader, file: string | null): FileSource[] {
  const found = new Map<string, FileSource>()
  const holders = new Map<string, JsonReader>()
  for (const entry of given.entries()) {
    for (const source of sourcesOf(entry, pathOf(entry), file)) {
      if (found.has(source.path)) {
        throw new ValidationError(entry.path, `the file ${source.path} stands there already.`, 'key')
      }
      found.set(source.path, source)
      holders.set(source.path, entry)
    }
  }
  for (const [path, entry] of holders) {
    const above = parentDirectories(path).find((dir) => found.has(dir))
    if (above)
      throw new ValidationError(
        entry.path,
        `the file ${path} cannot stand in ${above}, which is a file.`,
        'key',
      )
  }
  return [...found.values()]
}

/** `a/b/c` → `a`, `a/b`. */
const parentDirectories = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, index, names) => names.slice(0, index + 1).join('/'))

/** Returns the key as a path relative to the workspace; empty for the workspace itself. */
function pathOf({ path: place }: JsonReader): string {
  const key = String(place.at(-1)).replace(/^\/workspace(?:\/|$)/, '')
  const path = posix.normalize(key).replace(/\/$/, '')
  if (path.startsWith('/') || path === '..' || path.startsWith('../')) {
    throw new ValidationError(place, 'expected a path in the workspace, which this one leaves.', 'key')
  }
  return path === '.' ? '' : path
}

function sourcesOf(given: JsonReader, path: string, file: string | null): FileSource[] {
  const content = given.value as ContentInput
  if (typeof content !== 'string' && 'from' in content) {
    if (file === null)
      throw new ValidationError(
        [...given.path, 'from'],
        'a request reads no file of this machine: give its content.',
      )
    const from = resolve(dirname(file), content.from)
    return copySources(given, path, from)
  }
  if (path === '')
    throw new ValidationError(given.path, 'expected {"from": a directory}: "." is the workspace itself.')
  const bytes =
    typeof content === 'string' ? new TextEncoder().encode(content) : Buffer.from(content.base64, 'base64')
  return [{ path, bytes: () => bytes, size: bytes.byteLength }]
}

/** A file or a directory of this machine. */
function copySources(given: JsonReader, path: string, from: string): FileSource[] {
  const place = [...given.path, 'from']
  const stats = accessOrThrow(from, place, () => statSync(from))
  if (stats.isFile()) {
    if (path === '') throw new ValidationError(place, `${from} is a file: give it a path in the workspace.`)
    return [{ path, bytes: () => readFileSync(from), size: stats.size }]
  }
  if (!stats.isDirectory()) throw new ValidationError(place, `${from} is neither a file nor a directory.`)
  const sources: FileSource[] = []
  const enter = (dir: string, below: string): void => {
    const entries = accessOrThrow(dir, place, () => readdirSync(dir, { withFileTypes: true }))
    for (const entry of entries.sort(byName)) {
      if (EXCLUDED_NAMES.has(entry.name)) continue
      const full = join(dir, entry.name)
      const inner = posix.join(below, entry.name)
      if (entry.isDirectory()) {
        enter(full, inner)
        continue
      }
      // A link to a file is as that file; one to a directory may lead in a circle.
      const stats = accessOrThrow(full, place, () => statSync(full))
      if (!stats.isFile())
        throw new ValidationError(place, `${full} is neither a file, a link to one, nor a directory.`)
      sources.push({ path: inner, bytes: () => readFileSync(full), size: stats.size })
      if (sources.length > MAX_FILES) {
        throw new ValidationError(
          place,
          `${from} has more than ${MAX_FILES} files. Is it the directory you mean?`,
        )
      }
    }
  }
  enter(from, path)
  return sources
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

/**
 * Runs an operation on a path of this machine.
 *
 * @throws ValidationError at the path's position in the file if the operation fails
 */
function accessOrThrow<T>(path: string, place: readonly (string | number)[], operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    const missing = codeOf(error) === 'ENOENT'
    throw new ValidationError(
      place,
      missing ? `there is no ${path}.` : `${path} cannot be read: ${messageOf(error)}.`,
    )
  }
}
