import type { TSchema } from '@sinclair/typebox'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { type FileSource, readFiles } from './files.ts'
import {
  type AccountGiven,
  type KeyGiven,
  KeyText,
  type ProjectGiven,
  type ServerGiven,
  VariableText,
  type WebhookGiven,
  WebhookSecretText,
} from './model.ts'

/** The variables that values may be taken from. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables by name, with their values. */
export type Variables = Readonly<Record<string, string>>

/** What a file says of something, values that stand elsewhere put in. */
export type AccountFixture = Omit<AccountGiven, 'key'> & { readonly key?: string }
export type KeyFixture = Omit<KeyGiven, 'key'> & { readonly key?: string }
export type WebhookFixture = Omit<WebhookGiven, 'secret'> & { readonly secret?: string }
export type ServerFixture = Omit<ServerGiven, keyof Furnished> & Furnished
export type ProjectFixture = Omit<ProjectGiven, keyof Furnished> & Furnished

/** What servers and projects have in common. */
export interface Furnished {
  /** Null where the file says nothing of files. */
  readonly files: readonly FileSource[] | null
  readonly secrets: Variables
}

/** Variables of a server or a project that stand apart from it. */
export interface SecretsFixture {
  readonly server?: string
  readonly project?: string
  readonly values: Variables
}

/** Where the values stand that a file only names. */
export interface Elsewhere {
  /** The fixtures file, which paths are relative to. */
  readonly file: string
  readonly environment: Environment
}

/** Puts the values in that stand elsewhere; the shape is known to be good. @throws ValidationError where there is none */
export const settle = {
  account: (given: JsonReader, elsewhere: Elsewhere): AccountFixture => {
    const { key: _, ...rest } = given.value as AccountGiven
    return { ...rest, ...textIn(given, 'key', KeyText, elsewhere) }
  },
  key: (given: JsonReader, elsewhere: Elsewhere): KeyFixture => {
    const { key: _, ...rest } = given.value as KeyGiven
    return { ...rest, ...textIn(given, 'key', KeyText, elsewhere) }
  },
  webhook: (given: JsonReader, elsewhere: Elsewhere): WebhookFixture => {
    const { secret: _, ...rest } = given.value as WebhookGiven
    return { ...rest, ...textIn(given, 'secret', WebhookSecretText, elsewhere) }
  },
  server: (given: JsonReader, elsewhere: Elsewhere): ServerFixture => ({
    ...(given.value as ServerGiven),
    ...furnished(given, elsewhere),
  }),
  project: (given: JsonReader, elsewhere: Elsewhere): ProjectFixture => ({
    ...(given.value as ProjectGiven),
    ...furnished(given, elsewhere),
  }),
  secrets: (given: JsonReader, elsewhere: Elsewhere): SecretsFixture => ({
    ...(given.value as SecretsFixture),
    values: variables(given.field('values'), elsewhere),
  }),
}

function furnished(given: JsonReader, elsewhere: Elsewhere): Furnished {
  const files = given.field('files')
  return {
    files: files ? readFiles(files, elsewhere.file) : null,
    secrets: variables(given.field('secrets'), elsewhere),
  }
}

function variables(given: JsonReader | undefined, elsewhere: Elsewhere): Variables {
  return Object.fromEntries(
    (given?.entries() ?? []).map((entry) => [
      String(entry.path.at(-1)),
      textOf(entry, VariableText, elsewhere),
    ]),
  )
}

/** A field with its text, or nothing where it is not there. */
function textIn<Name extends string>(
  given: JsonReader,
  name: Name,
  shape: TSchema,
  elsewhere: Elsewhere,
): { [Key in Name]?: string } {
  const field = given.field(name)
  return (field ? { [name]: textOf(field, shape, elsewhere) } : {}) as { [Key in Name]?: string }
}

/** A text, or the value of the variable that stands for it, which has to have the same shape. */
function textOf({ value, path }: JsonReader, shape: TSchema, { environment }: Elsewhere): string {
  if (typeof value === 'string') return value
  const { env: name } = value as { env: string }
  const at = [...path, 'env']
  const found = environment[name]
  if (found === undefined || found === '') {
    throw new ValidationError(
      at,
      `the variable ${name} is not set in the environment that berth runs in. Set it, or write the value down.`,
    )
  }
  return new Validator(shape).parse(found, at) as string
}
