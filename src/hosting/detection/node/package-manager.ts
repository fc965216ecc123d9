import { posix } from 'node:path'
import type { Evidence } from '../../app-runtime/plan.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { fieldOf, type PackageJson, readPackageJson } from './package-json.ts'

/** A program that installs a package's dependencies. */
export interface PackageManager {
  readonly name: 'bun' | 'npm' | 'pnpm' | 'yarn'
  /** Whether its lock file determines the versions. */
  readonly locked: boolean
  /** Whether it is Yarn 2 or later, whose options differ. */
  readonly modern: boolean
  /** Whether the package names it or has its lock file. */
  readonly chosen: boolean
  /** Where the package says so. */
  readonly evidence: readonly Evidence[]
  readonly warnings: readonly string[]
}

/** Lock files by manager. Of several that nothing decides between, the first: Bun and npm need no download. */
const LOCK_FILES = [
  ['bun', 'bun.lock'],
  ['bun', 'bun.lockb'],
  ['npm', 'package-lock.json'],
  ['npm', 'npm-shrinkwrap.json'],
  ['pnpm', 'pnpm-lock.yaml'],
  ['yarn', 'yarn.lock'],
] as const

/** Reports whether a directory has a lock file of any manager. */
const hasLock = (directory: SourceDirectory): boolean => LOCK_FILES.some(([, file]) => directory.has(file))

/** Matches commands of a package manager in a script, but for the plain ones that Bun understands. */
export const CALLS =
  /(?:^|[\s;&|(="'])(?:(npm|pnpm|yarn)\s+(?!run\s+[\w:]+\s*(?:$|[;&|]))|npx\s|pnpx\s|pnpm\s+dlx\s)/

/**
 * Chooses the manager that the package names or whose lock file it has. Chooses Bun, which every server has, if there is
 * none or the server cannot have it.
 */
export async function choosePackageManager(
  app: SourceDirectory,
  pkg: PackageJson,
  machine: Machine,
): Promise<PackageManager> {
  const locks = LOCK_FILES.filter(([, file]) => app.has(file))
  const [, named, major] = /^(bun|npm|pnpm|yarn)(?:@(\d+))?/.exec(pkg.packageManager ?? '') ?? []
  const stated = named ?? ['pnpm', 'yarn'].find((name) => Object.hasOwn(pkg.volta, name)) ?? onlyAllowed(pkg)
  const called = Object.values(pkg.scripts).map((script) => CALLS.exec(script)?.[1])
  const [first] = locks
  const ofLock = (locks.length > 1 ? locks.find(([name]) => called.includes(name)) : undefined) ?? first
  const traces = app.has('pnpm-workspace.yaml') ? 'pnpm' : app.has('.yarnrc.yml') ? 'yarn' : undefined
  const wanted = (stated ?? ofLock?.[0] ?? traces ?? 'bun') as PackageManager['name']
  const lock = locks.find(([name]) => name === wanted)?.[1]
  const others = locks.filter(([name]) => name !== wanted).map(([, file]) => file)
  const warnings =
    lock === undefined || others.length === 0
      ? []
      : [`Packages are installed by ${lock}; ${others.join(', ')} is ignored.`]
  if (wanted !== 'bun' && !(await machine.has(wanted))) {
    const by = lock ?? 'package.json'
    const missing = `${by} asks for ${wanted}, which the server does not have: Bun installs instead.`
    return { name: 'bun', locked: false, modern: false, chosen: false, evidence: [], warnings: [missing] }
  }
  const modern =
    wanted === 'yarn' &&
    (Number(major ?? 1) > 1 || app.has('.yarnrc.yml') || /^__metadata:/m.test(await app.code('yarn.lock')))
  const evidence = [
    ...(named === undefined ? [] : [await fieldOf(app, 'packageManager')]),
    ...(lock === undefined ? [] : [await app.evidence(lock)]),
  ]
  const chosen = stated !== undefined || lock !== undefined || traces !== undefined
  return { name: wanted, locked: lock !== undefined, modern, chosen, evidence, warnings }
}

/** Returns the manager that the package's own script insists on. */
const onlyAllowed = (pkg: PackageJson): string | undefined =>
  /\bonly-allow\s+(npm|pnpm|yarn|bun)\b/.exec(pkg.scripts.preinstall ?? '')?.[1]

/**
 * Returns the command that installs dependencies: exactly those of the lock file if there is one, else by package.json,
 * without a new lock file, which the next install would take for the author's.
 *
 * @param production whether to leave out development dependencies
 */
export function installCommand({ name, locked, modern }: PackageManager, production: boolean): string {
  switch (name) {
    case 'bun':
      return `bun install${production ? ' --omit=dev' : ''} ${locked ? '--frozen-lockfile' : '--no-save'}`
    case 'npm': {
      const rest = `--no-audit --no-fund${production ? ' --omit=dev' : ''}`
      return locked ? `npm ci ${rest}` : `npm install --no-package-lock ${rest}`
    }
    case 'pnpm':
      return `pnpm install${production ? ' --prod' : ''} ${locked ? '--frozen-lockfile' : '--no-lockfile'}`
    case 'yarn':
      if (modern) return `yarn install ${locked ? '--immutable' : '--no-immutable'}`
      return `yarn install --non-interactive${production ? ' --production' : ''} ${locked ? '--frozen-lockfile' : '--no-lockfile'}`
  }
}

/**
 * Returns a command of Bun's runner by the package's own manager: Yarn's for all, since only programs that it starts find
 * packages of Plug'n'Play, and the chosen one's for scripts if they call it.
 */
export function byManager(
  command: string,
  pkg: PackageJson,
  { name, modern, chosen }: PackageManager,
): string {
  if (modern) return command.replace(/\bbun run\b/g, 'yarn run').replace(/(^|\s)node (?=\S)/g, '$1yarn node ')
  if (name === 'bun' || !chosen || !Object.values(pkg.scripts).some((script) => CALLS.test(script)))
    return command
  return command.replace(/\bbun run ([\w:.-]+)( -[^&|;]*)?/g, (all, script: string, options = '') =>
    Object.hasOwn(pkg.scripts, script)
      ? `${name} run ${script}${options === '' || name !== 'npm' ? options : ` --${options}`}`
      : all,
  )
}

/** The packages that are installed together with one. */
export interface PackageRoot {
  /** Where the install runs: the package's own directory, or one above. */
  readonly directory: SourceDirectory
  readonly pkg: PackageJson
  /** Its path from the package; empty for the package itself. */
  readonly way: string
}

/** Returns the nearest directory above a package whose workspace has it; the package's own if there is none. */
export async function findRoot(app: SourceDirectory, pkg: PackageJson): Promise<PackageRoot> {
  const own = { directory: app, pkg, way: '' }
  if (hasLock(app)) return own
  for (const above of app.above) {
    const root = await readPackageJson(above).catch(() => null)
    if (root !== null && includes(root, from(above, app)))
      return { directory: above, pkg: root, way: from(app, above) }
  }
  return own
}

/** Reports whether a workspace has a package. */
function includes({ workspaces }: PackageJson, path: string): boolean {
  const matches = (pattern: string): boolean =>
    new Bun.Glob(pattern.replace(/^\.\//, '').replace(/\/$/, '')).match(path)
  return (
    workspaces.some((pattern) => !pattern.startsWith('!') && matches(pattern)) &&
    !workspaces.some((pattern) => pattern.startsWith('!') && matches(pattern.slice(1)))
  )
}

/** Most packages of a workspace that are read. @bound peer */
const MAX_MEMBERS = 200

/**
 * Returns the directories, relative to a package, of those of its workspace that it depends on and that have a build, in
 * the order in which they are built.
 */
export async function findBuiltFirst(
  app: SourceDirectory,
  pkg: PackageJson,
  root: PackageRoot,
): Promise<string[]> {
  if (root.way === '') return []
  const members = new Map<string, { path: string; pkg: PackageJson }>()
  const files = root.directory.files.filter((file) => file.endsWith('/package.json'))
  for (const file of files.slice(0, MAX_MEMBERS)) {
    const path = file.slice(0, -'/package.json'.length)
    if (!includes(root.pkg, path)) continue
    const member = await readPackageJson(root.directory.at(path)).catch(() => null)
    if (member?.name) members.set(member.name, { path, pkg: member })
  }
  const found: string[] = []
  const seen = new Set([pkg.name])
  const visit = (one: PackageJson): void => {
    for (const name of Object.keys({ ...one.dependencies, ...one.devDependencies })) {
      const member = members.get(name)
      if (member === undefined || seen.has(name)) continue
      seen.add(name)
      visit(member.pkg)
      if (member.pkg.scripts.build !== undefined) found.push(from(app, root.directory.at(member.path)))
    }
  }
  visit(pkg)
  return found
}

const from = (a: SourceDirectory, b: SourceDirectory): string => posix.relative(`/${a.path}`, `/${b.path}`)
