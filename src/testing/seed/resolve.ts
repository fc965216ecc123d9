import type { TSchema } from '@sinclair/typebox'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { type FileSource, readFiles } from './files.ts'
import {
  type AccountInput,
  type KeyInput,
  KeyText,
  type ProjectInput,
  type ServerInput,
  VariableText,
  type WebhookInput,
  WebhookSecretText,
} from './model.ts'
import { UNSET_REMEDY } from './unset-variable.ts'

/** The variables that values may be taken from. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>

/** Variables by name, with their values. */
export type Variables = Readonly<Record<string, string>>

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
  readonly secrets: Variables
}

/** Variables that are given separately from their server or project. */
export interface SecretsFixture {
  readonly server?: string
  readonly project?: string
  readonly values: Variables
}

/** The sources of values that a file only refers to. */
export interface ValueSources {
  /** The fixtures file, which paths are relative to; null if they may not refer to files. */
  readonly file: string | null
  readonly environment: EnvironmentVariables
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

function variables(given: JsonReader | undefined, sources: ValueSources): Variables {
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
      `the variable ${name} is not set in the environment of this command. ${UNSET_REMEDY}`,
    )
  }
  return new Validator(shape).parse(found, at) as string
}
