import { expect } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { OWNER } from '../../scripts/packaging/owner.ts'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { projectPorts } from '../support/ports.ts'
import { command as berth, cleanEnvironment } from '../support/serve.ts'
import CALLS from './calls.json'

/** The repository's root. */
export const ROOT = join(import.meta.dir, '../..')

/** Where `scripts/clients` puts the packages. */
export const PACKAGES = join(ROOT, 'dist/clients')

/** The packages with which the client for TypeScript is built. */
export const TYPESCRIPT_TOOLS = join(ROOT, 'node_modules/.cache/clients/typescript/node_modules')

/** How long a suite may take on a busy machine, with the installation of its packages. */
export const PATIENCE_MS = 300_000

/** What a program printed, and how it ended. */
export interface Ended {
  readonly exitCode: number
  readonly output: string
}

/**
 * Builds the package of a language by `scripts/clients`.
 *
 * @returns null, or the reason why this machine cannot build it, as the script printed it
 * @throws Error with the output if the build failed, or in CI for every reason
 */
export async function buildPackage(language: string): Promise<string | null> {
  const { exitCode, output } = await run([join(ROOT, 'scripts/clients'), language], { cwd: ROOT })
  const skipped = /^SKIP: .*/m.exec(output)?.[0] ?? null
  if (exitCode !== 0 || (skipped && process.env.CI))
    throw new Error(`scripts/clients ${language}:\n${output}`)
  return skipped
}

/** Runs a program to its end with this machine's environment, without berth's own variables. */
export async function run(
  command: readonly string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<Ended> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: { ...cleanEnvironment(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, error, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { exitCode, output: out + error }
}

/** Returns a directory with the programs `berth`, which is the one under test, and `bun`, to put on a PATH. */
export function programs(directory: string): string {
  const bin = join(directory, 'bin')
  if (existsSync(bin)) return bin
  mkdirSync(bin)
  writeFileSync(join(bin, 'berth'), `#!/bin/sh\nexec ${shellQuote(berth)} "$@"\n`)
  chmodSync(join(bin, 'berth'), 0o755)
  symlinkSync(process.execPath, join(bin, 'bun'))
  return bin
}

/** Returns PATH with a directory before the machine's. */
export const pathWith = (directory: string): string => `${directory}${delimiter}${process.env.PATH ?? ''}`

/** Runs the suite of a language by `berth run`, in the directory where its package is installed. */
export const runSuite = (command: readonly string[], directory: string): Promise<Ended> =>
  run(
    [
      ...berth,
      ...['run', '--allow-local-webhooks', '--spare-servers', '0', '--project-ports', projectPorts(), '--'],
      ...command,
    ],
    { cwd: directory, env: { PATH: pathWith(programs(directory)) } },
  )

/**
 * Expects that a suite passed and made every call of calls.json.
 *
 * @param passed matches each passed test in the output; its first group is the id of the call, with `_` for `-` if a language
 * has no `-` in names
 */
export function expectEveryCall({ exitCode, output }: Ended, passed: RegExp): void {
  expect(`exit code ${exitCode}\n${output}`).toStartWith('exit code 0\n')
  const made = [...output.matchAll(passed)].map(([, id = '']) => id.replaceAll('_', '-'))
  expect([...new Set(made)].sort()).toEqual(CALLS.map(({ id }) => id).sort())
}

/** Puts the client for TypeScript into a `node_modules`, with the packages that it needs, as npm would. */
export function unpackClient(modules: string): void {
  const directory = join(PACKAGES, 'typescript')
  const [tarball = ''] = new Bun.Glob('*.tgz').scanSync(directory)
  const target = join(modules, `@${OWNER}/berth-client`)
  mkdirSync(target, { recursive: true })
  const command = ['tar', '-xzf', join(directory, tarball), '-C', target, '--strip-components=1']
  const { exitCode, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers'])
    symlinkSync(join(TYPESCRIPT_TOOLS, name), join(modules, name))
}

/** The Python with which the client for Python is built, and its pip. */
const PYTHON_TOOLS = join(ROOT, 'node_modules/.cache/clients/python/venv/bin/python')

/** What the tests of the client for Python need besides it. */
const PYTHON_RUNNERS = ['pytest==9.2.0', 'pytest-xdist==3.8.0']

/**
 * Makes an environment of Python with its client, as pip installs it, and with pytest.
 *
 * @param directory the environment, which must not exist
 * @param python the program that runs Python
 * @throws Error with what it printed if it cannot be installed
 */
export async function installPythonClient(directory: string, python = 'python3'): Promise<void> {
  const [wheel = ''] = new Bun.Glob('*.whl').scanSync({ cwd: join(PACKAGES, 'python'), absolute: true })
  // An environment with a pip of its own takes twice as long.
  const pip = [PYTHON_TOOLS, '-m', 'pip', '--disable-pip-version-check', '--python', directory]
  for (const command of [
    [python, '-m', 'venv', '--without-pip', directory],
    [...pip, 'install', '--quiet', wheel, ...PYTHON_RUNNERS],
  ]) {
    const { exitCode, output } = await run(command, { cwd: ROOT })
    if (exitCode !== 0) throw new Error(`${command.join(' ')}:\n${output}`)
  }
}
