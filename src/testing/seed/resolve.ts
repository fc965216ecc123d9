import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import {
  type AccountInput,
  type ContentInput,
  type KeyInput,
  KeyText,
  type ProjectInput,
  type ServerInput,
  VariableText,
  type WebhookInput,
  WebhookSecretText,
} from './model.ts'

/** The variables that values may be taken from. */
export type HostVariables = Readonly<Record<string, string | undefined>>

/** Variables by name, with their values. */
export type FixtureVariables = Readonly<Record<string, string>>

/** Entries of a file with all values resolved. */
export type AccountFixture = Omit<AccountInput, 'key'> & { readonly key?: string }
export type KeyFixture = Omit<KeyInput, 'key'> & { readonly key?: string }
export type WebhookFixture = Omit<WebhookInput, 'secret'> & { readonly secret?: string }
export type ServerFixture = Omit<ServerInput, keyof FilesAndSecrets> & FilesAndSecrets
export type ProjectFixture = Omit<ProjectInput, keyof FilesAndSecrets | 'server'> &
  FilesAndSecrets & { readonly server: string }

/** Fields that servers and projects share. */
interface FilesAndSecrets {
  /** Null if the file has no such field. */
  readonly files: readonly FileSource[] | null
  readonly secrets: FixtureVariables
}

/** Variables that are given separately from their server or project. */
export interface SecretsFixture {
  readonly server?: string
  readonly project?: string
  readonly values: FixtureVariables
}

/** The sources of values that a file only refers to. */
export interface ValueSources {
  /** The fixtures file, which paths are relative to; null if they may not refer to files. */
  readonly file: string | null
  readonly environment: HostVariables
}

/**
 * Resolves the values that an entry refers to; its shape has been checked.
 *
 * @throws ValidationError if a value does not exist
 */
export const resolveFixture = {
  account: (given: JsonReader, sources: ValueSources): AccountFixture => {
    const { key: _, ...rest } = given.value as AccountInput
    return { ...rest, ...textIn(given, 'key', KeyText, sources) }
  },
  key: (given: JsonReader, sources: ValueSources): KeyFixture => {
    const { key: _, ...rest } = given.value as KeyInput
    return { ...rest, ...textIn(given, 'key', KeyText, sources) }
  },
  webhook: (given: JsonReader, sources: ValueSources): WebhookFixture => {
    const { secret: _, ...rest } = given.value as WebhookInput
    return { ...rest, ...textIn(given, 'secret', WebhookSecretText, sources) }
  },
  server: (given: JsonReader, sources: ValueSources): ServerFixture => ({
    ...(given.value as ServerInput),
    ...readFilesAndSecrets(given, sources),
  }),
  project: (given: JsonReader, sources: ValueSources): ProjectFixture => ({
    ...(given.value as ProjectInput),
    server: (given.value as ProjectInput).server ?? String(given.path.at(-1)),
    ...readFilesAndSecrets(given, sources),
  }),
  secrets: (given: JsonReader, sources: ValueSources): SecretsFixture => ({
    ...(given.value as SecretsFixture),
    values: variables(given.field('values'), sources),
  }),
}

function readFilesAndSecrets(given: JsonReader, sources: ValueSources): FilesAndSecrets {
  const files = given.field('files')
  return {
    files: files ? readFiles(files, sources.file) : null,
    secrets: variables(given.field('secrets'), sources),
  }
}

function variables(given: JsonReader | undefined, sources: ValueSources): FixtureVariables {
  return Object.fromEntries(
    (given?.entries() ?? []).map((entry) => [
      String(entry.path.at(-1)),
      textOf(entry, VariableText, sources),
    ]),
  )
}

/** Returns a field with its text, or nothing if it is absent. */
function textIn<Name extends string>(
  given: JsonReader,
  name: Name,
  shape: TSchema,
  sources: ValueSources,
): { [Key in Name]?: string } {
  const field = given.field(name)
  return (field ? { [name]: textOf(field, shape, sources) } : {}) as { [Key in Name]?: string }
}

/** Returns a text, or the value of the variable that it refers to, which must have the same shape. */
function textOf({ value, path }: JsonReader, shape: TSchema, { environment }: ValueSources): string {
  if (typeof value === 'string') return value
  const { env: name } = value as { env: string }
  const at = [...path, 'env']
  const found = environment[name]
  if (found === undefined || found === '') {
    throw new ValidationError(
      at,
      `the variable ${name} is not set in the environment of this command: set it, or write its value here.`,
    )
  }
  return new Validator(shape).parse(found, at) as string
}

/** A file to put into a workspace. */
export interface FileSource {
  /** Path relative to the directory that the files belong to. */
  readonly path: string
  readonly bytes: () => Uint8Array
  readonly size: number
}

/** Names that a copy of a directory leaves out, because they are recreated. */
const EXCLUDED_NAMES: ReadonlySet<string> = new Set(['.git', 'node_modules', '.berth'])

/** More files are no fixtures, but a home directory or a disk that was named by mistake. @bound owner */
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
