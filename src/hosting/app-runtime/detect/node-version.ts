import type { Tools } from '../tools.ts'
import type { AppFolder } from './folder.ts'
import type { Found } from './found.ts'
import { isObject, type PackageJson } from './package-json.ts'

/** So many major versions after the machine's are looked at for one that is wanted. */
const NEWER = 30

/**
 * Whether the machine's Node.js is older than the package, or a package that it names, says it runs on. A range that
 * no newer version fits is one for older versions, which people leave in place for long: it counts for nothing.
 */
export async function isNodeTooOld(app: AppFolder, pkg: PackageJson, tools: Tools): Promise<boolean> {
  const ranges = [...(pkg.node === null ? [] : [pkg.node]), ...(await rangesOfDependencies(app, pkg))]
  if (ranges.length === 0) return false
  const version = await tools.nodeVersion()
  return version !== null && ranges.some((range) => isBelow(version, range))
}

/** Runs by Bun what would be run by Node.js: what a script starts, too. */
export function byBunAlone(found: Found): Found {
  const instead = (command: string): string =>
    command.replace(/\bbun run\b/g, 'bun --bun run').replace(/(^|\s)node (?=\S)/g, '$1bun ')
  const { kind, build, start } = found
  return {
    ...found,
    kind: `${kind}, by Bun since Node.js here is too old for it`,
    build: build === null ? null : instead(build),
    start: start.kind === 'command' ? { ...start, command: instead(start.command) } : start,
  }
}

function isBelow(version: string, range: string): boolean {
  if (Bun.semver.satisfies(version, range)) return false
  const major = Number.parseInt(version, 10)
  return Array.from({ length: NEWER }, (_, n) => `${major + n}.999.0`).some((newer) =>
    Bun.semver.satisfies(newer, range),
  )
}

/** What npm's lock file, the one that keeps it, tells of the packages that are named. */
async function rangesOfDependencies(app: AppFolder, pkg: PackageJson): Promise<string[]> {
  const lock = await app.json('package-lock.json').catch(() => null)
  const packages = isObject(lock) && isObject(lock.packages) ? lock.packages : {}
  const names = Object.keys({ ...pkg.dependencies, ...pkg.devDependencies })
  return names.flatMap((name) => {
    const entry = packages[`node_modules/${name}`]
    const engines = isObject(entry) && isObject(entry.engines) ? entry.engines : {}
    return typeof engines.node === 'string' ? [engines.node] : []
  })
}
