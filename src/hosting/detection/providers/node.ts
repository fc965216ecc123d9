import { posix } from 'node:path'
import type { Evidence, StartPlan } from '../../app-runtime/plan.ts'
import {
  type Candidate,
  inDirectory,
  type Provider,
  reaches,
  type Strength,
  startCommand,
} from '../candidate.ts'
import { dependsOnServer, findEntry, findListening, findLooseEntry, runFile } from '../node/entry.ts'
import { DOCUMENTATION, type Framework, recognizeFramework } from '../node/frameworks.ts'
import { readNodeVersions, settingsOfNode } from '../node/node-version.ts'
import { dependsOn, fieldOf, type PackageJson, readPackageJson, resolveScript } from '../node/package-json.ts'
import {
  byManager,
  choosePackageManager,
  findBuiltFirst,
  findRoot,
  installCommand,
  type PackageManager,
  type PackageRoot,
} from '../node/package-manager.ts'
import {
  isCompiler,
  isTaskRunner,
  mayLeaveOutTools,
  runsAll,
  runsServer,
  startsSeveral,
  whyNoServer,
} from '../node/scripts.ts'
import type { SourceDirectory } from '../source.ts'

const BIN = 'node_modules/.bin'

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
  async look(app, machine) {
    const pkg = await readPackageJson(app)
    if (pkg === null) return looseFile(app)
    const root = await findRoot(app, pkg)
    const manager = await choosePackageManager(root.directory, root.pkg, machine)
    const { needs, isTooOld } = await readNodeVersions(app, pkg, root, machine)
    const found = await findStart(app, pkg, manager)
    const build = await buildOf(app, pkg, found, root)
    const run = isTooOld ? byBun : (command: string): string => byManager(command, pkg, manager)
    const { strength, start } = found
    const settings = await settingsOfNode(app, pkg, needs, machine)
    const kind = kindOf(found, manager)
    const candidate: Candidate = {
      kind: isTooOld ? `${kind}, by Bun since Node.js here is too old for it` : kind,
      strength,
      ...installs(pkg, manager, { root, lean: build === null && found.mayBeLean }),
      build: build === null ? null : run(build),
      start: start?.kind === 'command' ? { ...start, command: run(start.command) } : start,
      ...(found.obstacle ?? {}),
      path: root.way === '' ? [BIN] : [BIN, `${root.way}/${BIN}`],
      variables: { ...settings.variables, ...(await variablesOf(app, pkg)) },
      tools: kind === 'Bun' ? [] : needs,
      evidence: [...found.evidence, ...manager.evidence, ...settings.evidence],
      embeds: await embedsOf(app, pkg, found),
      runs: RUNS,
      warnings: manager.warnings,
    }
    return [candidate]
  },
}

/** Returns a TypeScript or JavaScript file that serves, in a directory that belongs to no package. */
const looseFile = async (directory: SourceDirectory): Promise<Candidate[]> => {
  if (directory.above.some((above) => above.has('package.json'))) return []
  const entry = await findLooseEntry(directory)
  if (entry === null) return []
  const command = await runFile(directory, entry, false)
  const kind = command.startsWith('bun ') ? 'Bun' : 'Node.js'
  const evidence = [await directory.evidence(entry)]
  return [{ kind, strength: 'weak', start: startCommand(command), evidence, runs: RUNS }]
}

/** How a package starts. */
interface Found {
  readonly framework: Framework | null
  readonly strength: Strength
  readonly start: StartPlan | null
  /** Why it has no start, and whether nothing else in the directory can be the app. */
  readonly obstacle?: { readonly obstacle: string; readonly claims: boolean }
  /** Whether its start needs no development packages. */
  readonly mayBeLean: boolean
  readonly evidence: readonly Evidence[]
}

const noStart = (obstacle: string, claims: boolean, evidence: readonly Evidence[] = []): Found => ({
  ...{ framework: null, strength: 'none', start: null, mayBeLean: false },
  ...{ obstacle: { obstacle, claims }, evidence },
})

async function findStart(app: SourceDirectory, pkg: PackageJson, manager: PackageManager): Promise<Found> {
  const why = await whyNoServer(app, pkg)
  if (why !== null) return noStart(why.sentence, true, [why.evidence])
  const framework = await recognizeFramework({ app, pkg })
  const { dev = '', start: script } = pkg.scripts
  const isAbout = pkg.workspaces.length > 0 && framework !== null && DOCUMENTATION.has(framework.by)
  if (framework === null || isAbout) return packageStart(app, pkg, manager)
  const { start, by } = framework
  const dependency = await fieldOf(app, by, pkg.dependencies[by] ?? pkg.devDependencies[by])
  if (start.kind === 'files' && script === undefined && startsSeveral(dev) && runsServer(pkg)) {
    const several =
      'package.json has no script "start", and its script "dev" runs several programs, of which one is a server.'
    return noStart(several, true, [await fieldOf(app, 'dev', dev)])
  }
  const strength = start.kind === 'files' ? 'pages' : 'stated'
  return { framework, strength, start, mayBeLean: false, evidence: [dependency] }
}

/** Determines how a package without a framework starts. */
async function packageStart(app: SourceDirectory, pkg: PackageJson, manager: PackageManager): Promise<Found> {
  const name = ['start', 'start:prod', 'start:production'].find(
    (one) => pkg.scripts[one] !== undefined && !isCompiler(resolveScript(pkg, one) ?? ''),
  )
  const script = name === undefined ? null : resolveScript(pkg, name)
  const isRoot = pkg.workspaces.length > 0
  const found = { framework: null, mayBeLean: false }
  if (name !== undefined && script !== null && !(isRoot && runsAll(script))) {
    const listens = await findListening(app, script)
    const stated = await fieldOf(app, name, pkg.scripts[name])
    return {
      ...found,
      strength: listens !== null ? 'proven' : isTaskRunner(script) ? 'weak' : 'stated',
      start: startCommand(runScript(app, name, script)),
      mayBeLean: mayLeaveOutTools(pkg, script),
      evidence: [stated, ...(listens === null ? [] : [listens])],
    }
  }
  if (isRoot) {
    const reason = `This is the root of several packages (${pkg.workspaces.join(', ')}), and package.json has no script "start" that says which of them to run.`
    return noStart(reason, true)
  }
  const entry = await findEntry(app, pkg)
  const listens = entry === null ? null : await findListening(app, entry)
  const { commands, modules } = pkg.offers
  const isForOthers = (commands || modules) && listens === null && !dependsOnServer(pkg)
  if (entry !== null && !isForOthers) {
    const bun =
      (manager.name === 'bun' && manager.chosen) || dependsOn(pkg, 'elysia', '@types/bun', 'bun-types')
    return {
      ...found,
      strength: listens === null ? 'weak' : 'stated',
      start: startCommand(await runFile(app, entry, bun)),
      mayBeLean: mayLeaveOutTools(pkg, `node ${entry}`),
      evidence: [listens ?? (await app.evidence(entry))],
    }
  }
  const dev = resolveScript(pkg, 'dev')
  if (dev !== null) {
    const start = startCommand(`NODE_ENV=development ${runScript(app, 'dev', dev)}`)
    return { ...found, strength: 'weak', start, evidence: [await fieldOf(app, 'dev', pkg.scripts.dev)] }
  }
  const nothing =
    'package.json has no script "start" and no "main" file, and there is no index, server or app file.'
  const evidence = [await app.evidence('package.json')]
  if (isForOthers) {
    const what = commands ? 'a command-line program ("bin" in package.json)' : 'a library for other packages'
    const sentence = `This is ${what}: package.json has no script "start", and nothing in it listens.`
    return noStart(sentence, false, evidence)
  }
  const { build } = pkg.scripts
  if (build === undefined) return noStart(nothing, false, evidence)
  const output = `If its script "build" makes pages, say where: {"static": {"folder": "dist"}}.`
  // A page that refers to what is built is one without a server.
  const hasPage = app.first(['index.html', 'dist/index.html', 'build/index.html']) !== null
  return noStart(`${nothing} ${output}`, !hasPage, [await fieldOf(app, 'build', build)])
}

function runScript(app: SourceDirectory, name: string, script: string): string {
  const tool = script.trim().replace(/^(?:(?:[A-Z_]+=\S+|cross-env|npx|bunx)\s+)+/, '')
  const options = /[&|;]/.test(tool) ? undefined : PORT_OPTIONS.find(([pattern]) => pattern.test(tool))?.[1]
  const run = options === undefined ? `bun run ${name}` : `bun run ${name} ${options}`
  // Node.js refuses to start without the file, which authors keep to themselves; the variables come from berth.
  const file = /\s--env-file[= ](\.env[\w.-]*)/.exec(script)?.[1]
  return file === undefined || app.has(file) ? run : `{ [ -e ${file} ] || : > ${file}; } && ${run}`
}

/** Makes Bun run the programs of Node.js, including those that a script starts. */
const byBun = (command: string): string =>
  command.replace(/\bbun run\b/g, 'bun --bun run').replace(/(^|\s)node (?=\S)/g, '$1bun ')

function kindOf({ framework, start }: Found, manager: PackageManager): string {
  if (framework !== null) return framework.name
  const byBun = start?.kind === 'command' && /^bun (?!run )/.test(start.command)
  return byBun || (manager.name === 'bun' && manager.chosen) ? 'Bun' : `Node.js (${manager.name})`
}

/** Returns the commands that install it: the usual one, and one with everything. */
function installs(
  pkg: PackageJson,
  manager: PackageManager,
  { root, lean }: { root: PackageRoot; lean: boolean },
): { install: string | null; fullInstall: string | null } {
  if (root.way !== '') {
    const install = inDirectory(root.way, installCommand(manager, false))
    return { install, fullInstall: install }
  }
  const isRoot = pkg.workspaces.length > 0
  const fullInstall = pkg.dependent.atAll || isRoot ? installCommand(manager, false) : null
  if (!lean || isRoot) return { install: fullInstall, fullInstall }
  const hasTools = Object.keys(pkg.devDependencies).length > 0
  return { install: pkg.dependent.toRun ? installCommand(manager, hasTools) : null, fullInstall }
}

/** Returns the command that builds it, after those of its workspace that it depends on. */
async function buildOf(
  app: SourceDirectory,
  pkg: PackageJson,
  { framework }: Found,
  root: PackageRoot,
): Promise<string | null> {
  // What hosts run in place of `build`.
  const script = ['heroku-postbuild', framework?.script ?? 'build'].find(
    (name) => pkg.scripts[name] !== undefined,
  )
  const own = script === undefined ? (framework?.build ?? null) : `bun run ${script}`
  if (framework !== null && framework.build === null) return null
  const first = await findBuiltFirst(app, pkg, root)
  const all = [
    ...first.map((directory) => inDirectory(directory, 'bun run build')),
    ...(own === null ? [] : [own]),
  ]
  return all.length === 0 ? null : all.join(' && ')
}

/** Returns what tells a framework at which address people see it: berth's proxy sets both headers. */
async function variablesOf(app: SourceDirectory, pkg: PackageJson): Promise<Record<string, string>> {
  const config = await app.textOf('svelte.config.js', 'svelte.config.ts', 'svelte.config.mjs')
  const prefix = /\benvPrefix\s*:\s*['"]([A-Z_]+)['"]/.exec(config)?.[1] ?? ''
  const svelte = dependsOn(pkg, '@sveltejs/kit') && /adapter-node|svelte-adapter-bun/.test(config)
  const auth = dependsOn(pkg, 'next-auth', '@auth/core', '@auth/express', '@auth/sveltekit')
  return {
    ...(svelte && {
      [`${prefix}PROTOCOL_HEADER`]: 'x-forwarded-proto',
      [`${prefix}HOST_HEADER`]: 'x-forwarded-host',
    }),
    ...(auth && { AUTH_TRUST_HOST: 'true' }),
    // Its browser is for tests, and hundreds of megabytes.
    ...(pkg.devDependencies.cypress !== undefined && { CYPRESS_INSTALL_BINARY: '0' }),
  }
}

/** Most files beside the one that listens in which front ends are looked for. @bound peer */
const MAX_BESIDE = 20

/** Directories into which front ends are built. */
const OUTPUT = '(?:dist|build|out|www|public|\\.output)'

/** Most directories between an app and a front end of it. */
const NEAR = 2

/**
 * Returns the directories, relative to the source, of packages whose built files its code names, such as `../client/dist`
 * or `path.join(root, 'client', 'dist')`, and that its own scripts do not build.
 */
async function embedsOf(app: SourceDirectory, pkg: PackageJson, found: Found): Promise<string[]> {
  const file = reaches(found.strength, 'stated') ? found.evidence.at(-1)?.file : undefined
  if (file === undefined || !/\.[cm]?[jt]s$/.test(file)) return []
  const all = [...app.source.files]
  const folder = file.slice(0, file.lastIndexOf('/') + 1)
  const beside = all.filter(
    (path) => path.startsWith(folder) && /^[\w-]+\.[cm]?[jt]s$/.test(path.slice(folder.length)),
  )
  const texts = await Promise.all(beside.slice(0, MAX_BESIDE).map((path) => app.source.code(path)))
  const code = texts.join('\n')
  const scripts = [pkg.scripts.build, pkg.scripts['heroku-postbuild'], pkg.scripts.postinstall].join('\n')
  return all
    .filter((path) => path.endsWith('/package.json'))
    .map((path) => posix.dirname(path))
    .filter((path) => {
      const way = posix.relative(`/${app.path}`, `/${path}`).split('/')
      const name = way.at(-1) ?? ''
      if (way.length > NEAR || ['', '..'].includes(name) || scripts.includes(name)) return false
      return new RegExp(`(?<![\\w-])${RegExp.escape(name)}['"\`\\s,/]+${OUTPUT}(?![\\w-])`).test(code)
    })
}
