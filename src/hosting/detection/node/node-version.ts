import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { chooseTools, inRange, needsOf, pinned, readPin, type ToolNeed } from '../versions.ts'
import { fieldOf, majorOf, type PackageJson } from './package-json.ts'
import type { PackageRoot } from './package-manager.ts'

/** The Node.js that an app needs. */
interface NodeVersions {
  readonly needs: readonly ToolNeed[]
  /** Whether all that are installed are older than it requires, so that Bun runs it. */
  readonly isTooOld: boolean
}

/** Number of major versions after an installed one to test against a range. */
const NEWER = 30

/**
 * Most ranges that are tested, and most characters of one: each test reads all of it, and an app may have megabytes.
 * @bound peer
 */
const MAX_RANGES = 200
const MAX_RANGE_LENGTH = 200

/** Returns the versions that a package, those above it, and its dependencies ask for. */
export async function readNodeVersions(
  app: SourceDirectory,
  pkg: PackageJson,
  root: PackageRoot,
  machine: Machine,
): Promise<NodeVersions> {
  const at = app.pathOf('package.json')
  const range = pkg.engines.node ?? root.pkg.engines.node ?? null
  const volta = pkg.volta.node ?? root.pkg.volta.node ?? null
  const isStrict = /^\s*engine-strict\s*=\s*true/m.test(
    `${await app.text('.npmrc')}\n${await root.directory.text('.npmrc')}`,
  )
  const pin = await readPin(app, 'node')
  const versions = (await machine.toolchains('node')).map(({ version }) => version)
  const own = range === null || range.length > MAX_RANGE_LENGTH ? [] : [range]
  const [lock, ofDependencies] = await rangesOfDependencies(root)
  // Most packages have one of a few ranges. One that no newer version satisfies is an old one of a package that never changed it.
  const late = [...new Set([...own, ...ofDependencies])]
    .filter(({ length }) => length <= MAX_RANGE_LENGTH)
    .slice(0, MAX_RANGES)
    .filter((one) => versions.some((version) => isBelow(version, one)))
  const isTooOld =
    !isStrict && versions.length > 0 && versions.every((version) => late.some((one) => isBelow(version, one)))
  if (isTooOld) return { needs: [], isTooOld }
  const [needed] = late.filter((one) => !own.includes(one))
  const needs = [
    ...own.map((one) => inRange('node', one, at, isStrict)),
    pin ?? (volta === null ? null : pinned('node', volta, at)),
    needed === undefined
      ? null
      : {
          ...inRange('node', needed, lock, false),
          fits: (version: string) => late.every((one) => !isBelow(version, one)),
        },
  ]
  const isAsked = versions.length > 0 || needs.some((need) => need !== null)
  return { needs: isAsked ? needsOf('node', needs) : [], isTooOld }
}

function isBelow(version: string, range: string): boolean {
  if (Bun.semver.satisfies(version, range)) return false
  const major = Number.parseInt(version, 10)
  return Array.from({ length: NEWER }, (_, n) => `${major + n}.999.0`).some((newer) =>
    Bun.semver.satisfies(newer, range),
  )
}

/** Returns npm's lock file, and the ranges of Node.js in it for the root's packages. Other lock files have none. */
async function rangesOfDependencies({ directory, pkg }: PackageRoot): Promise<[lock: string, string[]]> {
  const file = 'package-lock.json'
  const packages = fieldsOf(fieldsOf(await directory.json(file).catch(() => null)).packages)
  const ranges = Object.keys({ ...pkg.dependencies, ...pkg.devDependencies }).flatMap((name) => {
    const { node } = fieldsOf(fieldsOf(packages[`node_modules/${name}`]).engines)
    return typeof node === 'string' ? [node] : []
  })
  return [directory.pathOf(file), ranges]
}

/** The first major version of packages whose webpack does without the hash that OpenSSL 3 dropped. */
const WITHOUT_MD4: Readonly<Record<string, number>> = {
  webpack: 5,
  'react-scripts': 5,
  '@vue/cli-service': 5,
  '@angular-devkit/build-angular': 12,
  gatsby: 3,
  'laravel-mix': 6,
  'preact-cli': 4,
  gridsome: 1,
  next: 11,
  nuxt: 3,
}

/** The first Node.js with OpenSSL 3. */
const OPENSSL_3 = 17

/** Variables that the chosen Node.js needs, and where a file says so. */
interface NodeSettings {
  readonly variables: Readonly<Record<string, string>>
  readonly evidence: readonly Evidence[]
}

/**
 * Returns the variable that names the headers beside the chosen Node.js, from which native packages are compiled without
 * fetching them, and the one without which an old webpack fails under a newer Node.js.
 */
export async function settingsOfNode(
  app: SourceDirectory,
  pkg: PackageJson,
  needs: readonly ToolNeed[],
  machine: Machine,
): Promise<NodeSettings> {
  if (needs.length === 0) return { variables: {}, evidence: [] }
  const { path, tools } = await chooseTools(needs, machine)
  const bin = path[0] ?? (await machine.toolchains('node')).find(({ isDefault }) => isDefault)?.bin ?? null
  const prefix = bin === null ? null : posix.dirname(bin)
  const hasHeaders =
    prefix !== null && (await machine.check('test', ['-e', `${prefix}/include/node/node.h`])).works
  const [old] = Object.entries(WITHOUT_MD4).find(
    ([name, first]) =>
      (majorOf(pkg, name) ?? first) < first && (name !== 'next' || majorOf(pkg, 'webpack') !== 5),
  ) ?? [null]
  const isLegacy = old !== null && Number.parseInt(tools[0]?.found ?? '0', 10) >= OPENSSL_3
  return {
    variables: {
      ...(hasHeaders && { npm_config_nodedir: prefix }),
      ...(isLegacy && { NODE_OPTIONS: '--openssl-legacy-provider' }),
    },
    evidence: isLegacy ? [await fieldOf(app, old, pkg.dependencies[old] ?? pkg.devDependencies[old])] : [],
  }
}
