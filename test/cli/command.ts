import { afterAll, expect } from 'bun:test'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KeyedInfo, showFailures } from '../support/berth.ts'
import { computeEnvironment, forCompute } from '../support/compute.ts'
import { projectPorts } from '../support/ports.ts'
import { command as berth, call, NO_SPARE_SERVERS } from '../support/serve.ts'
import { home, makeHome, stateHome } from '../support/state-home.ts'

/** How one command is run. */
export interface RunOptions {
  cwd?: string
  /** On top of a bare environment: nothing of this process's own reaches the command. */
  env?: Record<string, string>
  /** Bytes for standard input; without it standard input is empty. */
  stdin?: Uint8Array
}

/** What a command left behind. */
export interface Outcome {
  exitCode: number
  stdout: string
  stderr: string
  /** Standard output as bytes. */
  bytes: Uint8Array
}

/** The environment of every berth started here. */
export const bareEnvironment = (env: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  HOME: home,
  XDG_STATE_HOME: stateHome,
  ...computeEnvironment,
  ...env,
})

/** Starts a command with pipes for its output. */
export const start = (args: readonly string[], { cwd, env, stdin }: RunOptions = {}) =>
  Bun.spawn([...berth, ...forCompute(args)], {
    cwd: cwd ?? tmpdir(),
    env: bareEnvironment(env),
    stdin: stdin ?? 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })

/** Runs a command to its end. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options)
  const [bytes, stderr, exitCode] = await Promise.all([
    child.stdout.bytes(),
    child.stderr.text(),
    child.exited,
  ])
  return { exitCode, stdout: new TextDecoder().decode(bytes), stderr, bytes }
}

/** A folder that is gone after the test. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'berth-cli-')))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A `berth serve` that runs as a process of its own, in a folder of its own. */
export interface Served extends AsyncDisposable {
  readonly info: KeyedInfo
  /** The working directory it was started in; its data folder is `.berth` in it. */
  readonly cwd: string
  readonly child: ReturnType<typeof start>
  /** What it has printed on standard error, once it has ended. */
  readonly stderr: Promise<string>
  /** A command for this instance: it is run where the instance's folder is found. */
  run(args: readonly string[], options?: RunOptions): Promise<Outcome>
  /** The same with `--json`: it must succeed, and print one line and nothing else. Resolves to the value. */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints a shape of its own
  json(...args: readonly string[]): Promise<any>
  /** Provisions a server, over HTTP: most tests are of other commands. */
  server(): Promise<string>
}

/** Starts `berth serve` for the tests of a file, as `serve` does, and stops it after them. */
export async function serveForTests(args: readonly string[] = [], options: RunOptions = {}): Promise<Served> {
  makeHome()
  const served = await serve(args, options)
  afterAll(() => served[Symbol.asyncDispose]())
  return served
}

/** Starts `berth serve --json` on a free port; resolves at the ready line. */
export async function serve(args: readonly string[] = [], options: RunOptions = {}): Promise<Served> {
  // Where it starts in the directory of another, that one removes it.
  const own = options.cwd === undefined ? temporaryFolder() : null
  const cwd = options.cwd ?? own?.path ?? tmpdir()
  const given = [
    '--port',
    '0',
    '--log-level',
    'warn',
    '--project-ports',
    projectPorts(),
    ...NO_SPARE_SERVERS,
    ...args,
  ]
  const child = start(['serve', '--json', ...given], { ...options, cwd })
  const stderr = child.stderr.text()
  const { value } = await child.stdout.getReader().read()
  if (!value) {
    own?.[Symbol.dispose]()
    throw new Error(`berth did not start (exit code ${await child.exited}): ${await stderr}`)
  }
  const served: Served = {
    info: JSON.parse(new TextDecoder().decode(value)),
    cwd,
    child,
    stderr,
    run: (command, rest) => run(command, { cwd, ...rest }),
    async json(...args) {
      const { exitCode, stdout, stderr } = await served.run([...args, '--json'])
      expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' })
      expect(stdout.split('\n').length).toBe(2)
      return JSON.parse(stdout)
    },
    server: async () => {
      const { status, body } = await call(served.info, 'POST', '/servers', {})
      expect({ status, body }).toMatchObject({ status: 201 })
      return body.id
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
      showFailures(await stderr)
      own?.[Symbol.dispose]()
    },
  }
  return served
}
