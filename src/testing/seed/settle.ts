import { Given, Mistake } from '../../contract/given.ts'
import { parseCap, parsePlan } from '../../resources/accounts/plan.ts'
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
import { check, type Shape } from './shape.ts'

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

/** Puts the values in that stand elsewhere; the shape is known to be good. @throws Mistake where there is none */
export const settle = {
  account: (given: Given, elsewhere: Elsewhere): AccountFixture => {
    const { key: _, ...rest } = given.value as AccountGiven
    checkCredits(given)
    return { ...rest, ...textIn(given, 'key', KeyText, elsewhere) }
  },
  key: (given: Given, elsewhere: Elsewhere): KeyFixture => {
    const { key: _, ...rest } = given.value as KeyGiven
    return { ...rest, ...textIn(given, 'key', KeyText, elsewhere) }
  },
  webhook: (given: Given, elsewhere: Elsewhere): WebhookFixture => {
    const { secret: _, ...rest } = given.value as WebhookGiven
    return { ...rest, ...textIn(given, 'secret', WebhookSecretText, elsewhere) }
  },
  server: (given: Given, elsewhere: Elsewhere): ServerFixture => ({
    ...(given.value as ServerGiven),
    ...furnished(given, elsewhere),
  }),
  project: (given: Given, elsewhere: Elsewhere): ProjectFixture => ({
    ...(given.value as ProjectGiven),
    ...furnished(given, elsewhere),
  }),
  secrets: (given: Given, elsewhere: Elsewhere): SecretsFixture => ({
    ...(given.value as SecretsFixture),
    values: variables(given.field('values'), elsewhere),
  }),
}

/** Credits have at most three decimals, which shapes do not say. */
function checkCredits(given: Given): void {
  const readers = [
    ['plan', parsePlan],
    ['budget_cap', parseCap],
  ] as const
  for (const [name, parse] of readers) {
    const field = given.field(name)
    try {
      if (field) parse(field.value)
    } catch (error) {
      throw new Mistake(
        field?.place ?? [],
        `expected ${error instanceof Error ? error.message : String(error)}.`,
      )
    }
  }
}

function furnished(given: Given, elsewhere: Elsewhere): Furnished {
  const files = given.field('files')
  return {
    files: files ? readFiles(files, elsewhere.file) : null,
    secrets: variables(given.field('secrets'), elsewhere),
  }
}

function variables(given: Given | undefined, elsewhere: Elsewhere): Variables {
  return Object.fromEntries(
    (given?.entries() ?? []).map((entry) => [
      String(entry.place.at(-1)),
      textOf(entry, VariableText, elsewhere),
    ]),
  )
}

/** A field with its text, or nothing where it is not there. */
function textIn<Name extends string>(
  given: Given,
  name: Name,
  shape: Shape,
  elsewhere: Elsewhere,
): { [Key in Name]?: string } {
  const field = given.field(name)
  return (field ? { [name]: textOf(field, shape, elsewhere) } : {}) as { [Key in Name]?: string }
}

/** A text, or the value of the variable that stands for it, which has to have the same shape. */
function textOf({ value, place }: Given, shape: Shape, { environment }: Elsewhere): string {
  if (typeof value === 'string') return value
  const { env: name } = value as { env: string }
  const at = [...place, 'env']
  const found = environment[name]
  if (found === undefined || found === '') {
    throw new Mistake(
      at,
      `the variable ${name} is not set in the environment that berth runs in. Set it, or write the value down.`,
    )
  }
  check(new Given(found, at), shape)
  return found
}
