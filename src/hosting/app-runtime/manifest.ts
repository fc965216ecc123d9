import { type Static, Type } from '@sinclair/typebox'
import { NO_NUL, variables, worded } from '../../contract/schema.ts'
import { JsonDocument, JsonSyntaxError } from '../../runtime/validation/json-document.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { AppError, type EnvRequirement } from './plan.ts'

/** Name of the file in an app's directory that describes how it runs. */
export const MANIFEST_FILE = 'berth.json'

/** The contents of `berth.json`. A missing field is detected; null means none. */
export interface Manifest {
  readonly install?: string | null
  readonly build?: string | null
  readonly start?: string
  /** Set if `start` is a worker, which answers no requests. */
  readonly kind?: 'worker'
  /** Commands that run beside it, by name. */
  readonly workers?: Readonly<Record<string, string>>
  /** Files that berth serves, instead of `start`. */
  readonly static?: { readonly folder: string; readonly fallback: boolean }
  /** The port on which the app always listens, regardless of PORT. */
  readonly port?: number
  readonly health?: string
  /** Seconds from the start command to the first healthy response. */
  readonly timeout?: number
  readonly watch?: boolean
  readonly env?: Readonly<Record<string, EnvRequirement>>
}

/** More than white space, without NUL. */
const Command = Type.String({ pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$' })
const CommandOrNull = worded(Type.Union([Command, Type.Null()]), 'a shell command, or null for none')
const Text = Type.String({ pattern: NO_NUL })

/** Matches names of workers. */
const WORKER_NAME = '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$'
/** @bound program */
const MAX_WORKERS = 20
const strict = { additionalProperties: false }

/** Schema of `berth.json`. */
const ManifestFile = Type.Object(
  {
    install: Type.Optional(CommandOrNull),
    build: Type.Optional(CommandOrNull),
    start: Type.Optional(worded(Command, 'a shell command')),
    static: Type.Optional(
      Type.Object(
        {
          folder: Type.Optional(
            worded(
              Type.String({ pattern: '^(?!/)(?!(?:.*/)?\\.\\.(?:/|$))[^\\u0000]*$' }),
              'a directory inside the app, relative to it',
            ),
          ),
          fallback: Type.Optional(Type.Boolean()),
        },
        strict,
      ),
    ),
    port: Type.Optional(worded(Type.Integer({ minimum: 1, maximum: 65_535 }), 'a port, 1 to 65535')),
    health: Type.Optional(
      worded(Type.String({ pattern: '^/[!-~]*$' }), 'a path that begins with "/", without spaces'),
    ),
    timeout: Type.Optional(
      worded(Type.Integer({ minimum: 1, maximum: 600 }), 'a whole number of seconds, 1 to 600'),
    ),
    kind: Type.Optional(worded(Type.Literal('worker'), '"worker"')),
    workers: Type.Optional(
      worded(
        Type.Record(Type.String({ pattern: WORKER_NAME }), worded(Command, 'a shell command'), {
          additionalProperties: false,
          maxProperties: MAX_WORKERS,
        }),
        `at most ${MAX_WORKERS} shell commands by name; a name has letters, digits, "_" and "-"`,
      ),
    ),
    watch: Type.Optional(Type.Boolean()),
    env: Type.Optional(
      variables(
        Type.Object(
          {
            required: Type.Optional(Type.Boolean()),
            description: Type.Optional(Text),
            default: Type.Optional(Text),
          },
          strict,
        ),
        { description: 'Variables that the app asks for.' },
      ),
    ),
  },
  strict,
)

const validator = new Validator(ManifestFile)

/**
 * Parses a manifest.
 *
 * @throws AppError that names the file, the line and column of each mistake, and what was expected there
 */
export function parseManifest(text: string): Manifest {
  const document = readJson(MANIFEST_FILE, text)
  try {
    const { static: files, env, ...fields } = validator.parse(document.value)
    if (files) refuseBeside('"static"', fields, ['start', 'kind', 'port', 'health', 'timeout'])
    if (fields.kind) refuseBeside('"kind": "worker"', fields, ['port', 'health', 'timeout'])
    return {
      ...fields,
      ...(files
        ? { static: { folder: plainPath(files.folder ?? ''), fallback: files.fallback ?? false } }
        : {}),
      ...(env ? { env: requirements(env) } : {}),
    }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new AppError(`${MANIFEST_FILE}, ${document.describe(error)}`)
  }
}

/**
 * Parses a JSON file of an app.
 *
 * @throws AppError that names the file, the line and what was expected there
 */
export function readJson(file: string, text: string): JsonDocument {
  try {
    return new JsonDocument(text, { isOwn: file === MANIFEST_FILE })
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new AppError(`${file}, ${error.message}`)
  }
}

/**
 * Refuses fields that have no effect beside another one.
 *
 * @throws ValidationError
 */
function refuseBeside(
  what: string,
  fields: Static<typeof ManifestFile>,
  names: readonly (keyof Static<typeof ManifestFile>)[],
): void {
  const other = names.find((name) => fields[name] !== undefined)
  if (other !== undefined)
    throw new ValidationError([], `${what} and "${other}" exclude each other; drop one.`)
}

const requirements = (
  env: NonNullable<Static<typeof ManifestFile>['env']>,
): Readonly<Record<string, EnvRequirement>> =>
  Object.fromEntries(
    Object.entries(env).map(([name, { required, description = null, default: value }]) => [
      name,
      { required: required ?? value === undefined, description, default: value ?? null },
    ]),
  )

/** Returns a relative path without empty names and `.`. */
const plainPath = (path: string): string =>
  path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/')
