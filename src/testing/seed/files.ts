import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import type { ContentGiven } from './model.ts'

/** A file that is to stand in a workspace. */
export interface FileSource {
  /** Where, relative to the folder that the files are of. */
  readonly path: string
  readonly bytes: () => Uint8Array
  readonly size: number
}

/** What stays behind where a folder is copied: it is made anew where it is wanted. */
const LEFT_OUT: ReadonlySet<string> = new Set(['.git', 'node_modules', '.berth'])

/** More files are no fixtures, but a home folder or a disk that was named by mistake. */
const MOST_FILES = 20_000

/**
 * Reads the files of a server or a project; their shape is known to be good. Of files and folders of this
 * machine the names are read now and the contents when they are wanted.
 *
 * @param file the fixtures file, which paths are relative to
 * @throws ValidationError for a path that leaves the workspace, stands twice or in a file, or does not exist on this machine
 */
export function readFiles(given: JsonReader, file: string): FileSource[] {
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
    const above = foldersAbove(path).find((folder) => found.has(folder))
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
const foldersAbove = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, index, names) => names.slice(0, index + 1).join('/'))

/** The key as a path relative to the workspace; empty for the workspace itself. */
function pathOf({ path: place }: JsonReader): string {
  const key = String(place.at(-1)).replace(/^\/workspace(?:\/|$)/, '')
  const path = posix.normalize(key).replace(/\/$/, '')
  if (path.startsWith('/') || path === '..' || path.startsWith('../')) {
    throw new ValidationError(place, 'expected a path in the workspace, which this one leaves.', 'key')
  }
  return path === '.' ? '' : path
}

function sourcesOf(given: JsonReader, path: string, file: string): FileSource[] {
  const content = given.value as ContentGiven
  if (typeof content !== 'string' && 'from' in content) {
    const from = resolve(dirname(file), content.from)
    return copied(given, path, from)
  }
  if (path === '')
    throw new ValidationError(given.path, 'expected {"from": a folder}: "." is the workspace itself.')
  const bytes =
    typeof content === 'string' ? new TextEncoder().encode(content) : Buffer.from(content.base64, 'base64')
  return [{ path, bytes: () => bytes, size: bytes.byteLength }]
}

/** A file or a folder of this machine. */
function copied(given: JsonReader, path: string, from: string): FileSource[] {
  const place = [...given.path, 'from']
  const stats = looked(from, place, () => statSync(from))
  if (stats.isFile()) {
    if (path === '') throw new ValidationError(place, `${from} is a file: give it a path in the workspace.`)
    return [{ path, bytes: () => readFileSync(from), size: stats.size }]
  }
  if (!stats.isDirectory()) throw new ValidationError(place, `${from} is neither a file nor a folder.`)
  const sources: FileSource[] = []
  const enter = (folder: string, below: string): void => {
    const entries = looked(folder, place, () => readdirSync(folder, { withFileTypes: true }))
    for (const entry of entries.sort(byName)) {
      if (LEFT_OUT.has(entry.name)) continue
      const full = join(folder, entry.name)
      const inner = posix.join(below, entry.name)
      if (entry.isDirectory()) {
        enter(full, inner)
        continue
      }
      // A link to a file is as that file; one to a folder may lead in a circle.
      const stats = looked(full, place, () => statSync(full))
      if (!stats.isFile())
        throw new ValidationError(place, `${full} is neither a file, a link to one, nor a folder.`)
      sources.push({ path: inner, bytes: () => readFileSync(full), size: stats.size })
      if (sources.length > MOST_FILES) {
        throw new ValidationError(
          place,
          `${from} has more than ${MOST_FILES} files. Is it the folder you mean?`,
        )
      }
    }
  }
  enter(from, path)
  return sources
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

/** Runs an operation on a path of this machine. @throws ValidationError at the place that names it, where the operation fails */
function looked<T>(path: string, place: readonly (string | number)[], operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const cause = error instanceof Error ? error.message : String(error)
    throw new ValidationError(place, missing ? `there is no ${path}.` : `${path} cannot be read: ${cause}.`)
  }
}
