import type { Tools } from '../tools.ts'
import type { AppDirectory } from './app-directory.ts'
import type { PackageJson } from './package-json.ts'

/** What installs a package's dependencies. */
export interface PackageManager {
  readonly name: 'bun' | 'npm' | 'pnpm' | 'yarn'
  /** Whether a lock file of its own says which versions to install. */
  readonly locked: boolean
  /** Whether it is Yarn 2 or later, whose options are others. */
  readonly modern: boolean
  /** Whether the package is another manager's, whose lock file must stay the only one. */
  readonly standIn: boolean
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
 * The manager that the package names or whose lock file it has; Bun, which every sandbox has, where it names none
 * or where that one is not installed.
 */
export async function choosePackageManager(
  app: AppDirectory,
  pkg: PackageJson,
  tools: Tools,
): Promise<PackageManager> {
  const locks = new Set<string>()
  for (const [name, file] of LOCK_FILES) if (await app.has(file)) locks.add(name)
  const [, named, major] = /^(bun|npm|pnpm|yarn)(?:@(\d+))?/.exec(pkg.packageManager ?? '') ?? []
  const wanted = (named ??
    LOCK_FILES.find(([name]) => locks.has(name))?.[0] ??
    'bun') as PackageManager['name']
  const modern = wanted === 'yarn' && (Number(major ?? 1) > 1 || (await app.has('.yarnrc.yml')))
  if (wanted === 'bun' || (await tools.has(wanted))) {
    return { name: wanted, locked: locks.has(wanted), modern, standIn: false }
  }
  return { name: 'bun', locked: false, modern: false, standIn: true }
}

/**
 * The command that installs dependencies: as the lock file says, and where that does not fit package.json any more
 * (somebody edited it by hand), as package.json says.
 *
 * @param production whether those for development are left out
 */
export function installCommand(manager: PackageManager, production: boolean): string {
  const { name, locked, modern, standIn } = manager
  if (name === 'bun') {
    const all = `bun install${production ? ' --omit=dev' : ''}${standIn ? ' --no-save' : ''}`
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
