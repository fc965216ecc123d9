import { parseJson } from './json.ts'
import { AppError, type EnvRequirement } from './plan.ts'

/** Name of the file in an app's directory that says how it runs. */
export const MANIFEST_FILE = 'berth.json'

/** The contents of `berth.json`. A missing field is detected; null means none. */
export interface Manifest {
  readonly install?: string | null
  readonly build?: string | null
  readonly start?: string
  /** Files that berth serves, instead of `start`. */
  readonly static?: { readonly folder: string; readonly fallback: boolean }
  /** The port on which the app always listens, regardless of PORT. */
  readonly port?: number
  readonly health?: string
  readonly watch?: boolean
  readonly env?: Readonly<Record<string, EnvRequirement>>
}

/** Matches names of environment variables. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Checks one field: returns its value for the plan, or throws what was expected. */
type Check = (value: unknown, field: string) => unknown

/**
 * Parses a manifest.
 *
 * @throws AppError that names the file, the field and what was expected
 */
export function parseManifest(text: string): Manifest {
  const fields = object(parseJson(MANIFEST_FILE, text), null)
  return checked(fields, FIELDS, null, crossCheck) as Manifest
}

const FIELDS: Readonly<Record<string, Check>> = {
  install: commandOrNull,
  build: commandOrNull,
  start: command,
  static: (value, field) => ({
    folder: '',
    fallback: false,
    ...checked(object(value, field), { folder, fallback: boolean }, field),
  }),
  port(value, field) {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535) return value
    throw expected(field, 'a port, 1 to 65535', value)
  },
  health(value, field) {
    if (typeof value === 'string' && /^\/[!-~]*$/.test(value)) return value
    throw expected(field, 'a path that begins with "/", without spaces', value)
  },
  watch: boolean,
  env: (value, field) =>
    Object.fromEntries(
      Object.entries(object(value, field)).map(([name, entry]) => {
        if (!VARIABLE.test(name)) throw expected(field, 'names of letters, digits and "_"', name)
        return [name, requirement(entry, `${field}.${name}`)]
      }),
    ),
}

function requirement(value: unknown, field: string): EnvRequirement {
  const checks = { required: boolean, description: text, default: text }
  const found = checked(object(value, field), checks, field) as {
    required?: boolean
    description?: string
    default?: string
  }
  return {
    required: found.required ?? found.default === undefined,
    description: found.description ?? null,
    default: found.default ?? null,
  }
}

function crossCheck({ start, static: files, port, health }: Record<string, unknown>): void {
  if (files === undefined) return
  const other = Object.entries({ start, port, health }).find(([, value]) => value !== undefined)
  if (other) throw new AppError(`${MANIFEST_FILE}: "static" and "${other[0]}" exclude each other; drop one.`)
}

function checked(
  fields: Record<string, unknown>,
  checks: Readonly<Record<string, Check>>,
  parent: string | null,
  then: (found: Record<string, unknown>) => void = () => {},
): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    const field = parent === null ? name : `${parent}.${name}`
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (check === undefined) {
      const known = Object.keys(checks).join(', ')
      throw new AppError(`${MANIFEST_FILE}: there is no field "${field}". Fields are ${known}.`)
    }
    found[name] = check(value, field)
  }
  then(found)
  return found
}

function object(value: unknown, field: string | null): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw expected(field, 'an object', value)
}

function command(value: unknown, field: string): string {
  if (typeof value === 'string' && value.trim() !== '' && !value.includes('\0')) return value
  throw expected(field, 'a shell command', value)
}

function commandOrNull(value: unknown, field: string): string | null {
  if (value === null) return null
  if (typeof value === 'string' && value.trim() !== '' && !value.includes('\0')) return value
  throw expected(field, 'a shell command, or null for none', value)
}

function text(value: unknown, field: string): string {
  if (typeof value === 'string' && !value.includes('\0')) return value
  throw expected(field, 'a string', value)
}

function boolean(value: unknown, field: string): boolean {
  if (typeof value === 'boolean') return value
  throw expected(field, 'true or false', value)
}

function folder(value: unknown, field: string): string {
  const path = text(value, field)
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  if (!path.startsWith('/') && !names.includes('..')) return names.join('/')
  throw expected(field, 'a folder inside the app, relative to it', value)
}

function expected(field: string | null, what: string, got: unknown): AppError {
  const where = field === null ? MANIFEST_FILE : `${MANIFEST_FILE}: "${field}"`
  return new AppError(`${where}: expected ${what}, got ${JSON.stringify(got)?.slice(0, 60)}.`)
}
