import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import type { PackageJson } from './package-json.ts'

/** A program that installs a package's dependencies. */
export interface PackageManager {
  readonly name: 'bun' | 'npm' | 'pnpm' | 'yarn'
  /** Whether its lock file determines the versions. */
  readonly locked: boolean
  /** Whether it is Yarn 2 or later, whose options differ. */
  readonly modern: boolean
  /**
   * Whether the package names it or has its lock file. Another leaves no lock file behind: the next look would take it for
   * the package's choice.
   */
  readonly chosen: boolean
}

const LOCK_FILES = [
  ['pnpm', 'pnpm-lock.yaml'],
  ['bun', 'bun.lock'],
  ['bun', 'bun.lockb'],
  ['yarn', 'yarn.lock'],
  ['npm', 'package-lock.json'],
  ['npm', 'npm-shrinkwrap.json'],
] as const

/**
 * Chooses the manager that the package names or whose lock file it has. Chooses Bun, which every sandbox has, if
 * there is none or it is not installed.
 */
export async function choosePackageManager(
  app: SourceDirectory,
  pkg: PackageJson,
  tools: Machine,
): Promise<PackageManager> {
  const locks = new Set<string>()
  for (const [name, file] of LOCK_FILES) if (await app.has(file)) locks.add(name)
  const [, named, major] = /^(bun|npm|pnpm|yarn)(?:@(\d+))?/.exec(pkg.packageManager ?? '') ?? []
  const wanted = (named ??
    LOCK_FILES.find(([name]) => locks.has(name))?.[0] ??
    'bun') as PackageManager['name']
  const modern = wanted === 'yarn' && (Number(major ?? 1) > 1 || (await app.has('.yarnrc.yml')))
  if (wanted === 'bun' || (await tools.has(wanted))) {
    return { name: wanted, locked: locks.has(wanted), modern, chosen: named !== undefined || locks.size > 0 }
  }
  return { name: 'bun', locked: false, modern: false, chosen: false }
}

/**
 * Returns the command that installs dependencies by the lock file or, if that does not match an edited package.json,
 * by package.json.
 *
 * @param production whether to leave out development dependencies
 */
export function installCommand(manager: PackageManager, production: boolean): string {
  const { name, locked, modern, chosen } = manager
  if (name === 'bun') {
    const all = `bun install${production ? ' --omit=dev' : ''}${chosen ? '' : ' --no-save'}`
    return locked ? `${all} --frozen-lockfile || ${all}` : all
  }
  if (name === 'npm') {
    const rest = `--no-audit --no-fund${production ? ' --omit=dev' : ''}`
    return locked ? `npm ci ${rest} || npm install ${rest}` : `npm install ${rest}`
  }
  if (name === 'pnpm') {
    const all = `pnpm install${production ? ' --prod' : ''}`
    return locked ? `${all} --frozen-lockfile || ${all} --no-frozen-lockfile` : all
  }
  if (modern) return locked ? 'yarn install --immutable || yarn install --no-immutable' : 'yarn install'
  const all = `yarn install --non-interactive${production ? ' --production' : ''}`
  return locked ? `${all} --frozen-lockfile || ${all}` : all
}
