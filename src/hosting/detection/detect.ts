/** Finds out what an app is and how it is installed, built and started. Each language is in `providers/`. */
import { posix } from 'node:path'
import type { Workspace } from '../../compute/workspace.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { MANIFEST_FILE, type Manifest, parseManifest } from '../app-runtime/manifest.ts'
import {
  AppError,
  type AppPlan,
  type Evidence,
  NoAppFound,
  type OtherApp,
  type StartPlan,
} from '../app-runtime/plan.ts'
import { type Candidate, inDirectory, type Provider } from './candidate.ts'
import { findVariables } from './env-files.ts'
import { type Foreign, readForeign } from './foreign-files.ts'
import type { Machine } from './machine.ts'
import { deno } from './providers/deno.ts'
import { go } from './providers/go.ts'
import { java } from './providers/java.ts'
import { node } from './providers/node.ts'
import { php } from './providers/php.ts'
import { python } from './providers/python.ts'
import { ruby } from './providers/ruby.ts'
import { rust } from './providers/rust.ts'
import { staticFiles } from './providers/static.ts'
import { type Placed, type Ranking, rank } from './rank.ts'
import { Source, type SourceDirectory } from './source.ts'
import { type ChosenTools, chooseTools } from './versions.ts'
import { type Procfile, planWorkers, readProcfile, workersJson } from './workers.ts'

export { titleOf } from '../tool-names.ts'
export { LocalMachine } from './local-machine.ts'
export type { Machine } from './machine.ts'
export { SandboxMachine } from './sandbox-machine.ts'

/** Where to look for an app, and with what. */
export interface DetectionOptions {
  workspace: Workspace
  /** The source, relative to the workspace; empty for the workspace itself. */
  directory: string
  /** The app's own directory, relative to the source, if its author has named one. */
  within?: string
  /** The programs that its commands can call. */
  machine: Machine
  /** Whether somebody has said that it answers no requests. */
  isWorker?: boolean
}

/** What was found out about a source. `start` is null exactly if there is a `problem` with finding an app. */
export interface Detection extends Omit<AppPlan, 'kind' | 'start'> {
  readonly kind: string | null
  readonly start: StartPlan | null
  /** Why the app cannot be run, with the remedy; null if it can. */
  readonly problem: AppError | null
  /** A `berth.json` that says the same, or a proposal where nothing says how the app starts; null without one. */
  readonly berthJson: Readonly<Record<string, unknown>> | null
}

/** All languages. Their order decides between candidates of the same strength. */
export const PROVIDERS: readonly Provider[] = [deno, node, python, go, rust, java, php, ruby, staticFiles]

/** What an app is called of which no language is known, by how it starts. */
const KINDS = { command: 'command', files: 'static files', workers: 'worker' } as const

/** Most pieces of evidence that are kept. @bound reader */
const MAX_EVIDENCE = 20

/** Most other apps that are named. @bound reader */
const MAX_OTHERS = 20

/**
 * Determines how the app of a source is installed, built and started, from its `berth.json`, its Procfile and what its
 * languages' providers make of its files. Executes nothing of it.
 *
 * @throws AppError for a mistake in a file; ComputeError if the sandbox cannot be asked for its tools
 */
export async function detectApp(options: DetectionOptions): Promise<Detection> {
  const source = await Source.open(options)
  return detectIn(source, source.at(options.within ?? ''), options)
}

/**
 * Returns how to run the app of a source, as `detectApp` finds it.
 *
 * @throws AppError for a mistake in its files, or a tool or a version that is missing; NoAppFound if nothing says how it
 * starts; ComputeError if the sandbox cannot be asked for its tools
 */
export async function planApp(options: DetectionOptions): Promise<AppPlan> {
  const { kind, start, problem, berthJson: _, ...rest } = await detectApp(options)
  if (problem !== null) throw problem
  if (kind === null || start === null) throw new TypeError('An app without a problem has a start.')
  return { ...rest, kind, start }
}

async function detectIn(
  source: Source,
  directory: SourceDirectory,
  { machine, isWorker = false }: Pick<DetectionOptions, 'machine' | 'isWorker'>,
): Promise<Detection> {
  const text = await directory.document(MANIFEST_FILE)
  const manifest = text === null ? {} : parseManifest(text)
  const procfile = await readProcfile(directory)
  const below = await candidatesIn(source, directory, machine)
  const stated = statedStart(manifest, procfile, below)
  const command = stated?.kind === 'command' ? stated.command : null
  const candidates = [...below, ...(await embeddedOutside(source, directory, below, machine))]
  const ranking = rank(candidates, stated === null ? null : (command ?? ''))
  const { app } = ranking
  if (stated === null && app !== null && app.start !== null && app.directory !== '') {
    // Its own berth.json and Procfile count as if its directory had been named.
    const found = await detectIn(source, directory.at(app.directory), { machine, isWorker })
    return {
      ...found,
      others: [...found.others, ...othersOf(ranking, directory)].slice(0, MAX_OTHERS),
      // What a compose file of the whole names, its apps need.
      warnings: [...new Set([...found.warnings, ...(await readForeign(directory)).warnings])],
    }
  }
  const foreign = await readForeign(directory)
  const started = planWorkers({
    ...{ manifest, procfile, start: stated ?? app?.start ?? null },
    isWorker: isWorker || manifest.kind === 'worker',
  })
  const { start, workers } = started
  const isStated = stated !== null || start?.kind === 'workers'
  const chosen = await chooseNeeded(ranking, { manifest, isStated }, machine)
  const evidence = await evidenceOf(directory, procfile, ranking, foreign)
  const commands = commandsOf(ranking, manifest, isStated)
  const plan = {
    kind: app?.kind ?? (start && KINDS[start.kind]),
    directory: directory.path,
    ...commands,
    release: manifest.start === undefined ? (procfile.get('release') ?? null) : null,
    start: start && placed(start, manifest, directory.path),
    workers,
    timeout: manifest.timeout ?? null,
    health: manifest.health ?? '/',
    watch: manifest.watch ?? false,
    env: await findVariables(directory, manifest.env ?? {}, app?.secrets ?? {}, [
      commands.build ?? '',
      start?.kind === 'command' ? start.command : '',
      ...Object.values(workers),
    ]),
    // The programs of its own packages first: of a virtual environment, its Python.
    path: [...(app?.path ?? []), ...chosen.path],
    variables: Object.assign({}, ...ranking.parts.map(({ variables }) => variables), app?.variables),
    tools: chosen.tools,
    evidence,
    leftOut: [...(app?.leftOut ?? []), ...started.leftOut],
    others: othersOf(ranking, directory).slice(0, MAX_OTHERS),
    warnings: [...source.warnings, ...(app?.warnings ?? []), ...chosen.warnings, ...foreign.warnings],
  }
  const problem =
    start === null
      ? new NoAppFound(whyNoApp(directory, procfile, ranking, foreign))
      : chosen.problem === null
        ? null
        : new AppError(chosen.problem)
  const { install, build } = plan
  const berthJson =
    start === null
      ? foreign.berthJson
      : { install, build, ...startJson(start), ...workersJson({ start, workers }) }
  return { ...plan, problem, berthJson }
}

/** Returns the fields of a manifest that start an app. */
function startJson(start: StartPlan): Readonly<Record<string, unknown>> {
  if (start.kind === 'workers') return {}
  if (start.kind === 'files') return { static: { folder: start.folder, fallback: start.fallback } }
  return { start: start.command, ...(start.port === null ? {} : { port: start.port }) }
}

/** Returns what all providers find in a directory and below, each placed relative to that directory. */
async function candidatesIn(source: Source, top: SourceDirectory, machine: Machine): Promise<Placed[]> {
  const directories = new Map([['', new Set<string>()]])
  for (const path of top.files) {
    const slash = path.lastIndexOf('/')
    const directory = path.slice(0, Math.max(0, slash))
    const names = directories.get(directory) ?? new Set<string>()
    directories.set(directory, names.add(path.slice(slash + 1)))
  }
  const found: Placed[] = []
  const covered = new Set<string>()
  // From the top down, since a directory may cover those below it.
  const depth = (path: string): number => (path === '' ? 0 : path.split('/').length)
  const order = ([a]: [string, unknown], [b]: [string, unknown]) => depth(a) - depth(b) || (a < b ? -1 : 1)
  for (const [directory, names] of [...directories].sort(order)) {
    for (const provider of PROVIDERS) {
      if (directory !== '' && ![...names].some((name) => provider.marks.test(name))) continue
      if (covered.has(`${provider.name} ${directory}`)) continue
      // A mistake in a file far below is not one of the app.
      const candidates = await provider.look(top.at(directory), machine).catch((error: unknown) => {
        if (directory === '' || !(error instanceof AppError)) throw error
        source.warn(`${directory}: ${error.message}`)
        return []
      })
      found.push(...candidates.map((candidate) => placedAt(top, directory, candidate)))
      for (const below of candidates.flatMap(({ covers = [] }) => covers))
        covered.add(`${provider.name} ${[directory, below].filter(Boolean).join('/')}`)
    }
  }
  return found
}

/** Returns the candidates of directories that are not below one, and that an app in it takes in. */
async function embeddedOutside(
  source: Source,
  top: SourceDirectory,
  candidates: readonly Placed[],
  machine: Machine,
): Promise<Placed[]> {
  const own = candidates.filter(({ directory }) => directory === '').flatMap(({ embeds }) => embeds)
  const found: Placed[] = []
  for (const directory of new Set(own.filter((path) => path.startsWith('..')))) {
    const at = source.at(posix.join(top.path, directory))
    for (const provider of PROVIDERS) {
      const all = await provider.look(at, machine)
      found.push(...all.map((one) => ({ ...placedAt(top, directory, one), isOutside: true })))
    }
  }
  return found
}

const placedAt = (top: SourceDirectory, directory: string, candidate: Candidate): Placed => ({
  ...{ install: null, build: null, start: null, tools: [] },
  ...candidate,
  directory,
  embeds: (candidate.embeds ?? []).map((path) => posix.relative(`/${top.path}`, `/${path}`)),
})

/** Returns the start that the app's author has stated; null if there is none, or one that a candidate replaces. */
function statedStart(
  manifest: Manifest,
  procfile: Procfile,
  candidates: readonly Placed[],
): StartPlan | null {
  if (manifest.static !== undefined) return { kind: 'files', ...manifest.static }
  if (manifest.start !== undefined) return { kind: 'command', command: manifest.start, port: null }
  const web = procfile.get('web')
  const isReplaced = (command: string): boolean =>
    candidates.some(
      ({ directory, start, replaces }) => directory === '' && start !== null && replaces?.test(command),
    )
  return web === undefined || isReplaced(web) ? null : { kind: 'command', command: web, port: null }
}

/** Returns a start with the manifest's port, and its files relative to the source. */
function placed(start: StartPlan, { port }: Manifest, directory: string): StartPlan {
  if (start.kind === 'workers') return start
  if (start.kind === 'command') return { ...start, port: port ?? start.port }
  return { ...start, folder: [directory, start.folder].filter(Boolean).join('/') }
}

/** Returns how an app and its parts are installed and built, parts first. */
function commandsOf(
  { app, parts }: Ranking,
  manifest: Manifest,
  isStated: boolean,
): Pick<AppPlan, 'install' | 'build'> {
  const install = isStated ? (app?.fullInstall ?? app?.install ?? null) : (app?.install ?? null)
  const all = [
    ...parts.map((part) => ({ ...part, install: part.fullInstall ?? part.install })),
    { directory: app?.directory ?? '', install, build: app?.build ?? null },
  ]
  const joined = (name: 'install' | 'build'): string | null => {
    const commands = all.flatMap(({ directory, [name]: command }) => {
      if (command === null) return []
      return directory === (app?.directory ?? '') ? [command] : [inDirectory(directory, command)]
    })
    if (commands.length < 2) return commands[0] ?? null
    return commands.map((one) => (one.startsWith('(') ? one : `{ ${one}; }`)).join(' && ')
  }
  return {
    install: manifest.install === undefined ? joined('install') : manifest.install,
    build: manifest.build === undefined ? joined('build') : manifest.build,
  }
}

/** Chooses the tools of what is run. The author of a manifest's commands knows what they need. */
async function chooseNeeded(
  { app, parts }: Ranking,
  { manifest, isStated }: { manifest: Manifest; isStated: boolean },
  machine: Machine,
): Promise<ChosenTools> {
  const needs = [...(app?.tools ?? []), ...parts.flatMap(({ tools }) => tools)]
  const chosen = await chooseTools(needs, machine)
  const isOwn = isStated && (manifest.install !== undefined || (app?.install ?? null) === null)
  return isOwn ? { ...chosen, problem: null } : chosen
}

const othersOf = ({ others }: Ranking, top: SourceDirectory): OtherApp[] =>
  others.map(({ directory, kind, install, build, start }) => ({
    directory: [top.path, directory].filter(Boolean).join('/'),
    kind,
    berthJson:
      directory !== '' || start?.kind !== 'command' ? null : { install, build, start: start.command },
  }))

async function evidenceOf(
  directory: SourceDirectory,
  procfile: Procfile,
  { app, parts }: Ranking,
  foreign: Foreign,
): Promise<Evidence[]> {
  const found = [
    ...(directory.has(MANIFEST_FILE) ? [await directory.evidence(MANIFEST_FILE, /"(?:start|static)"/)] : []),
    ...(procfile.size > 0 ? [await directory.evidence('Procfile', /^\s*web\s*:/)] : []),
    ...(app?.evidence ?? []),
    ...parts.flatMap(({ evidence }) => evidence),
    ...foreign.evidence,
  ]
  const seen = new Set<string>()
  return found
    .filter(({ file, line }) => !seen.has(`${file}:${line}`) && seen.add(`${file}:${line}`))
    .slice(0, MAX_EVIDENCE)
}

/** Most files and apps that are named where nothing says how an app starts. @bound reader */
const MAX_NAMED = 8

/** Returns why there is no app, with the remedy. */
function whyNoApp(
  directory: SourceDirectory,
  procfile: Procfile,
  ranking: Ranking,
  foreign: Foreign,
): string {
  const example = JSON.stringify(foreign.berthJson ?? { start: './my-server --port $PORT' })
  const remedy = `Add a ${MANIFEST_FILE} with a "start" command that listens on $PORT, for example ${example}.`
  const [other] = ranking.others
  const apps = ranking.others.slice(0, MAX_NAMED).map((one) => `${one.kind} in ${one.directory}`)
  const { obstacle = null } = ranking.app ?? {}
  if (obstacle !== null && other !== undefined)
    return `${obstacle} There is ${apps.join(', ')}: name its directory (--directory ${shellQuote([other.directory])}), or say in ${MANIFEST_FILE} what to start.`
  // A provider may know what to write.
  if (obstacle?.includes(MANIFEST_FILE)) return obstacle
  const said = [obstacle, foreign.says].filter((sentence) => sentence !== null)
  if (said.length > 0) return `${said.join(' ')} ${remedy}`
  if (procfile.size > 0) {
    const names = [...procfile.keys()].map((name) => `"${name}"`).join(', ')
    return `The Procfile has ${names} but no "web", the process that answers requests. Add a line "web: COMMAND" whose command listens on $PORT, or call a process that answers none "worker".`
  }
  if (other !== undefined)
    return `Nothing here says how the app starts, but there is ${apps.join(', ')}. Name its directory: --directory ${shellQuote([other.directory])}`
  const { files } = directory
  const more = files.length > MAX_NAMED ? ` and ${files.length - MAX_NAMED} more` : ''
  const what = files.length === 0 ? 'no files' : `${files.slice(0, MAX_NAMED).join(', ')}${more}`
  return `Nothing here says how the app starts: it has ${what}. ${remedy}`
}
