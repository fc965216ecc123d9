import { isObject } from '../../../runtime/is-object.ts'
import { AppError, type Evidence } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'

/** The parts of a package.json that matter for running the package. */
export interface PackageJson {
  readonly name: string | null
  readonly main: string | null
  readonly module: string | null
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  /** Whether it has any dependencies, and whether it has any at run time. */
  readonly dependent: { readonly atAll: boolean; readonly toRun: boolean }
  /** `pnpm@9.1.0`. */
  readonly packageManager: string | null
  /** The ranges of versions that it asks for, by program: `node`, `vscode`, … */
  readonly engines: Readonly<Record<string, string>>
  /** The versions that Volta is to run, by program. */
  readonly volta: Readonly<Record<string, string>>
  /** Whether it installs commands, and whether other packages import it. */
  readonly offers: { readonly commands: boolean; readonly modules: boolean }
  /** Patterns of the directories of further packages. */
  readonly workspaces: readonly string[]
}

/**
 * Returns the directory's package.json, or null if it has none.
 *
 * @throws AppError for a mistake in it
 */
export async function readPackageJson(app: SourceDirectory): Promise<PackageJson | null> {
  const value = await app.json('package.json')
  if (value === null) return null
  if (!isObject(value)) throw new AppError('package.json: expected an object.')
  const dependencies = strings(value.dependencies)
  const devDependencies = strings(value.devDependencies)
  const toRun = [dependencies, strings(value.optionalDependencies)].some(hasAny)
  return {
    name: text(value.name),
    main: text(value.main),
    module: text(value.module),
    scripts: scriptsOf(value.scripts),
    dependencies,
    devDependencies,
    dependent: { atAll: toRun || [devDependencies, strings(value.peerDependencies)].some(hasAny), toRun },
    packageManager: text(value.packageManager),
    engines: strings(value.engines),
    volta: strings(value.volta),
    offers: {
      commands: value.bin !== undefined,
      modules: [value.exports, value.types, value.typings, value.module, value.peerDependencies].some(
        Boolean,
      ),
    },
    workspaces: [
      ...patterns(value.workspaces),
      ...patterns(await app.tables('pnpm-workspace.yaml')),
      ...patterns(await app.tables('lerna.json')),
    ],
  }
}

/** Reports whether the package depends on one of these, for running or for developing it. */
export function dependsOn(pkg: PackageJson, ...names: string[]): boolean {
  return names.some(
    (name) => Object.hasOwn(pkg.dependencies, name) || Object.hasOwn(pkg.devDependencies, name),
  )
}

/** Returns where package.json has a field of this name, such as a script or a dependency. */
export function fieldOf(app: SourceDirectory, name: string, value = ''): Promise<Evidence> {
  const begin = value === '' ? '' : RegExp.escape(JSON.stringify(value.slice(0, 100)).slice(0, -1))
  return app.evidence('package.json', new RegExp(`${RegExp.escape(JSON.stringify(name))}\\s*:\\s*${begin}`))
}

/** Returns the lowest major version that the range of a dependency allows; null for one that names none. */
export function majorOf(pkg: PackageJson, name: string): number | null {
  const range = pkg.dependencies[name] ?? pkg.devDependencies[name] ?? ''
  const major = /^\D{0,3}(\d+)/.exec(range)?.[1]
  return major === undefined ? null : Number(major)
}

/** Returns a script's text, or that of the script that it only runs; null if there is none. */
export function resolveScript(pkg: PackageJson, name: string): string | null {
  const seen = new Set<string>()
  for (let next = name; !seen.has(next); ) {
    seen.add(next)
    const script = pkg.scripts[next]
    if (script === undefined) return null
    const alias = /^\s*(?:npm|pnpm|yarn|bun)(?:\s+run)?\s+([\w:.-]+)\s*$/.exec(script)?.[1]
    if (alias === undefined || pkg.scripts[alias] === undefined) return script
    next = alias
  }
  return null
}

/** Characters of a command that say what it runs. */
const LOOKED_AT = 5_000

/** Returns the part of a command that says what it runs. Patterns that look for that take hours for a command of megabytes. */
export const beginningOfCommand = (command: string): string => command.slice(0, LOOKED_AT)

const scriptsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(strings(value)).map(([name, script]) => [name, beginningOfCommand(script)]),
  )

function patterns(value: unknown): string[] {
  const list = isObject(value) ? value.packages : value
  return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
}

const hasAny = (group: object): boolean => Object.keys(group).length > 0

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

function strings(value: unknown): Record<string, string> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
