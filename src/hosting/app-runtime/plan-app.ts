import type { Workspace } from '../../compute/workspace.ts'
import { AppDirectory } from './detect/app-directory.ts'
import { detectGo, detectRust } from './detect/compiled.ts'
import { detectDeno } from './detect/deno.ts'
import type { DetectedApp, Detector } from './detect/detected-app.ts'
import { detectNode, detectScript } from './detect/node.ts'
import { detectPython } from './detect/python.ts'
import { detectStatic } from './detect/static.ts'
import { findVariables } from './detect/variables.ts'
import { MANIFEST_FILE, type Manifest, parseManifest } from './manifest.ts'
import { type AppError, type AppPlan, NoAppFound, type StartPlan } from './plan.ts'
import { needTool, type Tools } from './tools.ts'

/** An app's directory and the programs available to it. */
interface AppLocation {
  workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  dir: string
  /** Programs that its commands can call. */
  tools: Tools
}

/** The detectors, in order. Deno precedes plain TypeScript, which would claim its files. */
const DETECTORS: readonly Detector[] = [
  detectNode,
  detectDeno,
  detectScript,
  detectPython,
  detectGo,
  detectRust,
  detectStatic,
]

/** Most files that are named as what an app was detected by. */
const MAX_FOUND = 8

const EXAMPLE = `for example {"start": "./my-server --port $PORT"}`

/**
 * Determines how the app in a directory is installed, built and started, from its `berth.json`, its Procfile, its
 * package files and its conventional files, in this order. Detects the fields that the manifest omits.
 *
 * @throws AppError for a mistake in its files or a missing tool; NoAppFound if nothing says how it starts;
 * ComputeError if the sandbox cannot be asked for its tools
 */
export async function planApp({ workspace, dir, tools }: AppLocation): Promise<AppPlan> {
  const app = new AppDirectory(workspace, dir)
  const manifestText = await app.text(MANIFEST_FILE)
  const manifest = manifestText === null ? {} : parseManifest(manifestText)
  const procfile = parseProcfile((await app.text('Procfile')) ?? '')
  const web = procfile.get('web')
  const stated = startFromManifest(manifest, web, procfile.get('release'))
  const found = await detect(app, tools, stated !== null)
  const own = found?.start.kind === 'unknown' ? null : (found?.start ?? null)
  const base = stated ?? own
  if (base === null) throw noAppFoundError(found, procfile)

  const wantsFull = stated !== null && found !== null
  const install = wantsFull ? (found.fullInstall ?? found.install) : (found?.install ?? null)
  const plan = {
    install: manifest.install === undefined ? install : manifest.install,
    build: manifest.build === undefined ? (found?.build ?? null) : manifest.build,
  }
  // The author of a manifest's commands knows what they need. Only detected commands need their tools.
  const depends = stated === null || (plan.install !== null && manifest.install === undefined)
  if (depends) for (const tool of found?.needs ?? []) await needTool(tools, tool)
  // Before the files with variables are read: these say nothing of the start.
  const foundIn = app.found.slice(0, MAX_FOUND)
  return {
    kind: found?.kind ?? (manifest.static ? 'static files' : 'command'),
    foundIn,
    ...leftOut(procfile, manifest),
    ...plan,
    start: startOf(base, stated === null ? null : (found?.bin ?? null), manifest.port ?? null),
    health: manifest.health ?? '/',
    watch: manifest.watch ?? false,
    env: await findVariables(app, manifest.env ?? {}),
  }
}

/** Parses a Procfile into commands by process type. Skips invalid lines. */
function parseProcfile(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const [, name, command] = /^([A-Za-z0-9_-]+)\s*:\s*(\S.*)$/.exec(line.trim()) ?? []
    if (name !== undefined && command !== undefined && !found.has(name)) found.set(name, command)
  }
  return found
}

/** Returns the start that the app's author has stated; null if there is none. */
function startFromManifest(
  manifest: Manifest,
  web: string | undefined,
  release: string | undefined,
): StartPlan | null {
  if (manifest.static !== undefined) return { kind: 'files', ...manifest.static }
  if (manifest.start !== undefined) return { kind: 'command', command: manifest.start, port: null }
  if (web === undefined) return null
  // Heroku runs the release command with the app's variables before the new version starts. Berth prefixes it to the
  // start command.
  const command = release === undefined ? web : `{ ${release}; } && { ${web}; }`
  return { kind: 'command', command, port: null }
}

/**
 * Returns the processes of a Procfile that do not run: all but `web`, and `release` before it. One with a `start` of the
 * manifest is not in use.
 */
function leftOut(procfile: ReadonlyMap<string, string>, manifest: Manifest): Pick<AppPlan, 'leftOut'> {
  const others = [...procfile].filter(([name]) => name !== 'web' && name !== 'release')
  if (manifest.start !== undefined || manifest.static !== undefined || others.length === 0) return {}
  const web = procfile.get('web') ?? 'WEB_COMMAND'
  return {
    leftOut: others.map(([name, command]) => ({
      what: `"${name}" of the Procfile`,
      why: `berth runs "web" alone. To run both, put this into ${MANIFEST_FILE}: {"start": ${JSON.stringify(`${command} & ${web}`)}}`,
    })),
  }
}

async function detect(app: AppDirectory, tools: Tools, hasStart: boolean): Promise<DetectedApp | null> {
  let first: DetectedApp | null = null
  for (const detector of DETECTORS) {
    const found = await detector(app, tools)
    if (found === null) continue
    if (hasStart || found.start.kind !== 'unknown' || found.start.final) return found
    first ??= found
  }
  return first
}

/** A custom command finds the programs of dependencies on its PATH, as a package's own scripts do. */
function startOf(start: StartPlan, bin: string | null, port: number | null): StartPlan {
  if (start.kind === 'files') return start
  const command = bin === null ? start.command : `export PATH="$PWD/${bin}:$PATH"; ${start.command}`
  return { kind: 'command', command, port }
}

function noAppFoundError(found: DetectedApp | null, procfile: ReadonlyMap<string, string>): AppError {
  const remedy = `Add a ${MANIFEST_FILE} with a "start" command that listens on $PORT, ${EXAMPLE}.`
  if (found?.start.kind === 'unknown') return new NoAppFound(`${found.start.reason} ${remedy}`)
  if (procfile.size > 0) {
    const names = [...procfile.keys()].map((name) => `"${name}"`).join(', ')
    return new NoAppFound(
      `The Procfile has ${names} but no "web", the process that answers requests. Add a line "web: COMMAND" whose command listens on $PORT.`,
    )
  }
  return new NoAppFound(
    `Nothing here says how the app starts: there is no ${MANIFEST_FILE}, Procfile, package.json, main.ts, requirements.txt, go.mod, Cargo.toml, deno.json or index.html. ${remedy}`,
  )
}
