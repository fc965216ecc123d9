import { posix } from 'node:path'
import type { SourceDirectory } from '../source.ts'
import { type PackageJson, readPackageJson } from './package-json.ts'
import { hasLock } from './package-manager.ts'

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
  for (let above = app.parent; above !== null; above = above.parent) {
    const root = await readPackageJson(above).catch(() => null)
    const path = from(above, app)
    if (root !== null && includes(root, path)) return { directory: above, pkg: root, way: from(app, above) }
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

/** Most packages of a workspace that are read. */
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
