import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import type { AppPlan } from '../../../src/hosting/app-runtime/plan.ts'
import { planApp } from '../../../src/hosting/detection/detect.ts'
import { TemplateCatalog } from '../../../src/resources/templates/catalog.ts'
import { freePort } from '../../support/ports.ts'
import { processesOf, until } from '../../support/processes.ts'
import { serveFolder } from './folder-server.ts'

if (Bun.which('python3') === null) console.error('SKIP: no Python is installed (apt-get install python3)')

/** Whether this machine has what the apps of a template run on. */
export const runsHere = (id: string): boolean => id !== 'python-api' || Bun.which('python3') !== null

/** A new folder with the files of a template, as a project begins with: below a home, as in a server's workspace. */
export async function copyTemplate(id: string): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), `berth-template-${id}-`)), 'app')
  for (const { path, bytes, mode } of await new TemplateCatalog().files(id)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes, { mode })
  }
  return folder
}

/** Removes such a folder and its home. */
export const removeCopy = (folder: string): void => rmSync(dirname(folder), { recursive: true, force: true })

/** Runs a command in a folder with nothing of this environment but the PATH; `bun` is the one that runs the tests. */
export function run(folder: string, command: string, env: Record<string, string> = {}) {
  return Bun.spawn(['sh', '-c', `exec ${command}`], {
    cwd: folder,
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: dirname(folder), ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    // A group of its own, with what it starts.
    detached: true,
  })
}

/** Signals a command and what it started, as its supervisor does. Does nothing if they are gone. */
function signal({ pid }: { pid: number }, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name)
  } catch {}
}

/** How berth finds that an app is run. */
export const planCopy = (folder: string): Promise<AppPlan> =>
  planApp({
    workspace: new LocalWorkspace(dirname(folder)),
    directory: basename(folder),
    machine: {
      has: async (name) => Bun.which(name) !== null,
      toolchains: async (tool) => {
        const path = Bun.which(tool === 'python' ? 'python3' : tool)
        return path === null
          ? []
          : [{ tool, version: '3.0.0', path, bin: dirname(path), isDefault: true, source: 'PATH' }]
      },
      check: async () => ({ works: true, version: null }),
      memoryBytes: null,
    },
  })

/** An app of a template that runs. Disposing of it ends it and removes its folder. */
export interface TemplateApp extends AsyncDisposable {
  readonly folder: string
  /** Without a slash at the end. */
  readonly url: string
  readonly port: number
  /** Sends SIGTERM and tells how it ended; null for plain files. */
  stop(): Promise<{ code: number; ms: number; output: string } | null>
  /** Starts it again on the same port. */
  start(): Promise<void>
}

/** Copies a template and starts it on a free port; resolves when its health path answers. */
export async function startTemplate(id: string): Promise<TemplateApp> {
  const folder = await copyTemplate(id)
  const plan = await planCopy(folder)
  const { start, health } = plan
  const defaults = Object.entries(plan.env).map(([name, { default: value }]) => [name, value ?? ''])
  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  let child: ReturnType<typeof run> | null = null
  let output: Promise<string[]> = Promise.resolve([])
  let files: { stop(): Promise<void> } | null = null

  const app: TemplateApp = {
    folder,
    url,
    port,
    async start() {
      if (start.kind === 'files') {
        files = serveFolder(join(folder, start.folder), port)
        return
      }
      if (start.kind !== 'command') throw new Error('Nothing responds.')
      const started = run(folder, start.command, {
        ...Object.fromEntries(defaults),
        PORT: String(port),
        HOST: '127.0.0.1',
      })
      child = started
      output = Promise.all([new Response(started.stdout).text(), new Response(started.stderr).text()])
      const deadline = performance.now() + 20_000
      while (!(await answers(`${url}${health}`))) {
        if (started.exitCode !== null || performance.now() > deadline) {
          signal(started, 'SIGKILL')
          throw new Error(`${id} does not answer on ${health}:\n${(await output).join('')}`)
        }
        await Bun.sleep(10)
      }
    },
    async stop() {
      await files?.stop()
      files = null
      if (!child) return null
      const since = performance.now()
      signal(child, 'SIGTERM')
      const code = await child.exited
      const left = processesOf(folder)
      if (left.length > 0) throw new Error(`left behind: ${left.join('; ')}`)
      child = null
      return { code, ms: performance.now() - since, output: (await output).join('') }
    },
    async [Symbol.asyncDispose]() {
      await files?.stop()
      if (child) signal(child, 'SIGKILL')
      await child?.exited
      await until(() => processesOf(folder).length === 0, `no process is left of ${id}`)
      removeCopy(folder)
    },
  }
  try {
    await app.start()
    return app
  } catch (error) {
    await app[Symbol.asyncDispose]()
    throw error
  }
}

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
