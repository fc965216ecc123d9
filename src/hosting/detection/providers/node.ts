import { isObject } from '../../../runtime/is-object.ts'
import type { StartPlan } from '../../app-runtime/plan.ts'
import { type Candidate, type Provider, type Strength, startCommand } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import { findEntry, findLooseEntry, runFile } from '../node/entry.ts'
import { type Framework, recognizeFramework } from '../node/frameworks.ts'
import { dependsOn, type PackageJson, readPackageJson, resolveScript } from '../node/package-json.ts'
import { choosePackageManager, installCommand, type PackageManager } from '../node/package-manager.ts'
import type { SourceDirectory } from '../source.ts'

const BIN = 'node_modules/.bin'

/** Starts several programs at once. */
const SEVERAL = /\b(?:concurrently|npm-run-all|run-p)\b|[^&]&(?!&)/

/** Matches a command that runs a file by a runtime only, without a separate loader. */
const PLAIN_RUN =
  /^\s*(?:[A-Z_]+=\S+\s+)*(?:node|bun)\s+(?=\S)(?!.*\s(?:-r|--require|--import|--loader)\b)[^&|;]*$/

/** Development tools that ignore PORT and HOST, and their options for port and address. */
const PORT_OPTIONS: ReadonlyArray<readonly [tool: RegExp, options: string]> = [
  [/^(?:vite|astro|webpack|webpack-dev-server|ng)\b/, '--port $PORT --host $HOST'],
  [/^(?:parcel|json-server)\b/, '--port $PORT'],
  [/^wrangler\s+(?:pages\s+)?dev\b/, '--port $PORT --ip $HOST'],
]

/** Matches commands that this provider's runtimes and managers run. */
const RUNS = /(?:^|[\s/;&])(?:node|npm|npx|pnpm|yarn|bun|bunx|tsx|ts-node|next|vite)\b/

/** JavaScript and TypeScript: a package.json, for every runtime, or a loose file that serves. */
export const node: Provider = {
  name: 'node',
  marks: /^(?:package\.json|(?:main|index|server|app)\.[cm]?[jt]sx?)$/,
  async look(directory, machine) {
    const pkg = await readPackageJson(directory)
    if (pkg === null) return looseFile(directory)
    const manager = await choosePackageManager(directory, pkg, machine)
    const found = await detectPackage(directory, pkg, manager)
    const { start, ...rest } = (await isNodeTooOld(directory, pkg, machine))
      ? withBunOnly(found)
      : manager.modern
        ? withYarn(found)
        : found
    const line =
      pkg.scripts.start === undefined ? (pkg.scripts.dev === undefined ? null : /"dev"\s*:/) : /"start"\s*:/
    const candidate = {
      ...rest,
      path: [BIN],
      tools: [],
      evidence: [await directory.evidence('package.json', line)],
      runs: RUNS,
    }
    return [
      start.kind === 'unknown'
        ? { ...candidate, strength: 'none', start: null, obstacle: start.reason, claims: start.isFinal }
        : { ...candidate, start },
    ]
  },
}

/** Returns a TypeScript or JavaScript file that serves, without a package.json. */
const looseFile = async (directory: SourceDirectory): Promise<Candidate[]> => {
  const entry = await findLooseEntry(directory)
  if (entry === null) return []
  const command = await runFile(directory, entry, false)
  const kind = command.startsWith('bun ') ? 'Bun' : 'Node.js'
  const evidence = [await directory.evidence(entry)]
  const start = startCommand(command)
  return [{ kind, strength: 'weak', install: null, build: null, start, tools: [], evidence, runs: RUNS }]
}

/** An app whose start is not known. */
interface UnknownStart {
  readonly kind: 'unknown'
  /** Why, as a sentence. */
  readonly reason: string
  /** Whether nothing else in the directory can be the app. */
  readonly isFinal: boolean
}

/** How a package runs. */
interface Found {
  readonly kind: string
  readonly strength: Strength
  readonly install: string | null
  readonly fullInstall: string | null
  readonly build: string | null
  readonly start: StartPlan | UnknownStart
}

const unknownStart = (reason: string, isFinal = true): UnknownStart => ({ kind: 'unknown', reason, isFinal })

async function detectPackage(
  app: SourceDirectory,
  pkg: PackageJson,
  manager: PackageManager,
): Promise<Found> {
  const framework = await recognizeFramework({ app, pkg })
  const build = pkg.scripts.build === undefined ? (framework?.build ?? null) : 'bun run build'
  const { start, lean } = framework
    ? { start: frameworkApp(framework, pkg), lean: false }
    : await packageApp(app, pkg, manager)
  const strength: Strength =
    start.kind === 'files' ? 'pages' : framework || pkg.scripts.start !== undefined ? 'stated' : 'weak'
  const atAll = pkg.dependent.atAll || pkg.workspaces.length > 0
  const fullInstall = atAll ? installCommand(manager, false) : null
  const production = lean && build === null && pkg.workspaces.length === 0
  return {
    kind: framework?.name ?? kindOf(manager, start),
    install: production ? productionInstall(pkg, manager) : fullInstall,
    fullInstall,
    build: framework !== null && framework.build === null ? null : build,
    start,
    strength,
  }
}

function kindOf(manager: PackageManager, start: Found['start']): string {
  const byBun = start.kind === 'command' && /^bun (?!run )/.test(start.command)
  return byBun || (manager.name === 'bun' && manager.chosen) ? 'Bun' : `Node.js (${manager.name})`
}

/** Returns the install command; leaves development dependencies out if nothing is built. */
function productionInstall(pkg: PackageJson, manager: PackageManager): string | null {
  const spare = Object.keys(pkg.devDependencies).length > 0
  return pkg.dependent.toRun ? installCommand(manager, spare) : null
}

function frameworkApp(framework: Framework, pkg: PackageJson): Found['start'] {
  const { dev } = pkg.scripts
  const severs = framework.start.kind === 'files' && pkg.scripts.start === undefined && dev !== undefined
  if (!severs || !SEVERAL.test(dev) || !runsServer(pkg)) return framework.start
  return unknownStart(
    'package.json has no script "start", and its script "dev" runs several programs, of which one is a server.',
  )
}

/** Matches the end of a word that runs a file, such as `node`. */
const RUNTIME = /(?:^|\W)(?:node|nodemon|tsx|ts-node|ts-node-dev|bun)$/

/** Matches what may stand between the runtime and its file. */
const OPTION = /^(?:-.*|watch|run)$/

const SCRIPT_FILE = /^[\w./-]+\.[cm]?[jt]s\b/

/** Reports whether a script runs a server of the package. */
const runsServer = (pkg: PackageJson): boolean => Object.values(pkg.scripts).some(runsFile)

/** Word by word: a pattern for the whole would look at each word again for each runtime before it. */
function runsFile(script: string): boolean {
  let isAfterRuntime = false
  for (const word of script.split(/\s+/)) {
    if (isAfterRuntime && SCRIPT_FILE.test(word)) return true
    isAfterRuntime = RUNTIME.test(word) || (isAfterRuntime && OPTION.test(word))
  }
  return false
}

/** Determines how a package without a framework starts, and whether it needs development dependencies for that. */
async function packageApp(
  app: SourceDirectory,
  pkg: PackageJson,
  manager: PackageManager,
): Promise<{ start: Found['start']; lean: boolean }> {
  const script = resolveScript(pkg, 'start')
  if (script !== null)
    return { start: startCommand(runScript('start', script)), lean: PLAIN_RUN.test(script) }
  if (pkg.workspaces.length > 0) {
    const folders = pkg.workspaces.join(', ')
    const reason = `This is the root of several packages (${folders}), and package.json has no script "start" that says which of them to run.`
    return { start: unknownStart(reason), lean: false }
  }
  const entry = await findEntry(app, pkg)
  if (entry !== null) {
    const bun =
      (manager.name === 'bun' && manager.chosen) || dependsOn(pkg, 'elysia', '@types/bun', 'bun-types')
    return { start: startCommand(await runFile(app, entry, bun)), lean: true }
  }
  const dev = resolveScript(pkg, 'dev')
  if (dev !== null) {
    return { start: startCommand(`NODE_ENV=development ${runScript('dev', dev)}`), lean: false }
  }
  const nothing =
    'package.json has no script "start" and no "main" file, and there is no index, server or app file.'
  if (pkg.scripts.build === undefined) return { start: unknownStart(nothing, false), lean: false }
  const output = `If its script "build" makes pages, say where: {"static": {"folder": "dist"}}.`
  return { start: unknownStart(`${nothing} ${output}`), lean: false }
}

function runScript(name: string, script: string): string {
  const tool = script.trim().replace(/^(?:(?:[A-Z_]+=\S+|cross-env|npx|bunx)\s+)+/, '')
  const options = /[&|;]/.test(tool) ? undefined : PORT_OPTIONS.find(([pattern]) => pattern.test(tool))?.[1]
  return options === undefined ? `bun run ${name}` : `bun run ${name} ${options}`
}

/** Starts the app through Yarn. Yarn 2 and later may store packages where only programs that it starts find them. */
function withYarn(found: Found): Found {
  const through = (command: string): string =>
    command.replace(/\bbun run\b/g, 'yarn run').replace(/(^|\s)node (?=\S)/g, '$1yarn node ')
  const { build, start } = found
  return {
    ...found,
    build: build === null ? null : through(build),
    start: start.kind === 'command' ? { ...start, command: through(start.command) } : start,
  }
}

/** Number of major versions after the machine's to test against a range. */
const NEWER = 30

/** Most ranges that are tested, and most characters of one: each test reads all of it, and an app may have megabytes. */
const MAX_RANGES = 200
const MAX_RANGE_LENGTH = 200

/**
 * Reports whether the machine's Node.js is older than the package or one of its dependencies requires. Ignores a
 * range that no newer version satisfies: packages often keep such a range for older versions.
 */
async function isNodeTooOld(app: SourceDirectory, pkg: PackageJson, tools: Machine): Promise<boolean> {
  const all = [...(pkg.node === null ? [] : [pkg.node]), ...(await rangesOfDependencies(app, pkg))]
  // Most packages have one of a few ranges.
  const ranges = [...new Set(all)].filter(({ length }) => length <= MAX_RANGE_LENGTH).slice(0, MAX_RANGES)
  if (ranges.length === 0) return false
  const [version = null] = (await tools.toolchains('node')).map((one) => one.version)
  return version !== null && ranges.some((range) => isBelow(version, range))
}

/** Makes Bun run the programs of Node.js, including those that a script starts. */
function withBunOnly(found: Found): Found {
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

/** Returns the Node.js ranges of the given packages from npm's lock file. Other lock files have none. */
async function rangesOfDependencies(app: SourceDirectory, pkg: PackageJson): Promise<string[]> {
  const lock = await app.json('package-lock.json').catch(() => null)
  const packages = isObject(lock) && isObject(lock.packages) ? lock.packages : {}
  const names = Object.keys({ ...pkg.dependencies, ...pkg.devDependencies })
  return names.flatMap((name) => {
    const entry = packages[`node_modules/${name}`]
    const engines = isObject(entry) && isObject(entry.engines) ? entry.engines : {}
    return typeof engines.node === 'string' ? [engines.node] : []
  })
}
