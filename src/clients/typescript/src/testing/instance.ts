import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { berthExecutable } from './executable.js'

/** A running instance, and what calls it. */
export interface InstanceInfo {
  readonly baseUrl: string
  /** A key of the first account. */
  readonly apiKey: string
  /** The token of the control API. */
  readonly adminToken: string
}

/** How long an instance may take to start, in milliseconds. It takes about a tenth of a second. */
const START_MS = 60_000

/** How often a worker looks whether another one has started the instance, in milliseconds. */
const LOOK_MS = 20

/**
 * The command that `berth run` runs: it writes down where the instance is, and ends when the test run has, however that ended.
 * `berth run` then removes the instance. It gets its parameters by variables, and has no file of its own, since a package has no
 * path that ES modules and CommonJS both know.
 */
const WATCHER = `
const { readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } = require('node:fs')
const { dirname } = require('node:path')
const { BERTH_TESTING_OWNER: pid, BERTH_TESTING_STARTED: started, BERTH_TESTING_DIRECTORY: directory } = process.env
const info = { baseUrl: process.env.BERTH_BASE_URL, apiKey: process.env.BERTH_API_KEY, adminToken: process.env.BERTH_ADMIN_TOKEN }
const runs = () => {
  try { process.kill(Number(pid), 0) } catch (error) { if (error.code !== 'EPERM') return false }
  if (started === '') return true
  try {
    const fields = readFileSync('/proc/' + pid + '/stat', 'utf8').replace(/^.*\\) /s, '').split(' ')
    return fields[0] !== 'Z' && fields[19] === started
  } catch { return false }
}
const end = () => {
  rmSync(directory, { recursive: true, force: true })
  try { rmdirSync(dirname(directory)) } catch {}
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end)
writeFileSync(directory + '/instance.new', JSON.stringify(info), { mode: 0o600 })
renameSync(directory + '/instance.new', directory + '/instance.json')
setInterval(() => { if (!runs()) end() }, 100)
`

/** The instance that the environment names, or one that all workers of this test run share and that ends with the run. */
export async function sharedInstance(): Promise<InstanceInfo> {
  const { BERTH_BASE_URL: baseUrl, BERTH_API_KEY: apiKey, BERTH_ADMIN_TOKEN: adminToken } = process.env
  if (baseUrl && apiKey && adminToken) return { baseUrl, apiKey, adminToken }
  if (baseUrl)
    throw new Error(
      `BERTH_BASE_URL is set, but ${apiKey ? 'BERTH_ADMIN_TOKEN' : 'BERTH_API_KEY'} is not. Run the tests by "berth run -- …", which sets all three, or unset BERTH_BASE_URL: then they start an instance.`,
    )
  const owner = runner()
  const { directory, isNew } = claim(`${owner.pid}-${owner.started || 'run'}`)
  return isNew ? start(directory, owner, []) : started(directory)
}

/** Starts an instance of this process alone. @returns it, and what ends it */
export async function ownInstance(
  options: readonly string[],
): Promise<InstanceInfo & { stop(): Promise<void> }> {
  const owner = { pid: process.pid, started: startOf(process.pid) ?? '' }
  const { directory } = claim(`${process.pid}-own-${crypto.randomUUID()}`)
  return start(directory, owner, options)
}

/** A process, and when it started, so that another one with the same id is not taken for it. */
interface Owner {
  readonly pid: number
  /** In clock ticks since the start of the machine; empty where the system does not say. */
  readonly started: string
}

/** Returns the process of the whole test run: that of the runner, if this one is a worker of it. */
function runner(): Owner {
  const { NODE_TEST_CONTEXT, BUN_TEST_WORKER_ID } = process.env
  const isWorker =
    process.send !== undefined || NODE_TEST_CONTEXT?.startsWith('child') || BUN_TEST_WORKER_ID !== undefined
  const pid = isWorker ? process.ppid : process.pid
  return { pid, started: startOf(pid) ?? '' }
}

/** When a process started; null if it has ended, or the system does not say. */
function startOf(pid: number): string | null {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return state === 'Z' ? null : (fields[18] ?? null)
  } catch {
    return null
  }
}

/**
 * Makes the directory of an instance, in which only one process can be the first.
 *
 * @returns its path, and whether this process made it
 */
function claim(name: string): { directory: string; isNew: boolean } {
  while (true) {
    const parent = privateDirectory()
    const directory = join(parent, name)
    try {
      removeStale(parent)
      mkdirSync(directory, { mode: 0o700 })
      return { directory, isNew: true }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') return { directory, isNew: false }
      // The end of another run has just removed the empty directory above.
      if (code !== 'ENOENT') throw error
    }
  }
}

/**
 * Returns the directory of this user for the instances of test runs.
 *
 * @throws Error if it is another user's or others can read it
 */
function privateDirectory(): string {
  const directory = join(tmpdir(), `berth-testing-${process.getuid?.() ?? 'user'}`)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const status = lstatSync(directory)
  const isOwn =
    process.getuid === undefined || (status.uid === process.getuid() && (status.mode & 0o077) === 0)
  if (!status.isDirectory() || !isOwn)
    throw new Error(`${directory} is not a directory of this user alone: remove it, or set TMPDIR.`)
  return directory
}

/** Removes what test runs left that could not start an instance, or whose instance was killed. */
function removeStale(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [pid = '', start = ''] = name.split('-')
    const runs = start === 'run' || start === 'own' ? isAlive(Number(pid)) : startOf(Number(pid)) === start
    if (!runs) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

/** Removes the directory of an instance, and the one above if it is empty then. */
function removeInstance(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
  try {
    rmdirSync(dirname(directory))
  } catch {
    // Another run has its own there.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function start(
  directory: string,
  owner: Owner,
  options: readonly string[],
): Promise<InstanceInfo & { stop(): Promise<void> }> {
  const log = join(directory, 'log')
  const fail = (reason: string): never => {
    writeFileSync(join(directory, 'failure'), reason, { mode: 0o600 })
    process.once('exit', () => removeInstance(directory))
    throw new Error(reason)
  }
  let program = ''
  try {
    program = berthExecutable()
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error))
  }
  // Options of a test runner are not for the watcher.
  const { NODE_OPTIONS, NODE_TEST_CONTEXT, NODE_V8_COVERAGE, ...environment } = process.env
  const output = openSync(log, 'w', 0o600)
  const watcher = [process.execPath, '-e', WATCHER]
  const child = spawn(program, ['run', '--allow-local-webhooks', ...options, '--', ...watcher], {
    stdio: ['ignore', output, output],
    // Ctrl-C is for the test runner; this ends when that has.
    detached: true,
    env: {
      ...environment,
      BERTH_TESTING_OWNER: String(owner.pid),
      BERTH_TESTING_STARTED: owner.started,
      BERTH_TESTING_DIRECTORY: directory,
    },
  })
  closeSync(output)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? code}`))
  })
  child.unref()
  const abort = new AbortController()
  const outcome = await Promise.race([ended, started(directory, abort.signal)])
  abort.abort()
  if (typeof outcome === 'string')
    return fail(`berth could not be started (${program}): ${outcome}\n${readFileSync(log, 'utf8')}`)
  return {
    ...outcome,
    async stop() {
      child.ref()
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Waits until the instance of a directory has started. @throws Error if it could not */
async function started(directory: string, signal?: AbortSignal): Promise<InstanceInfo> {
  const end = Date.now() + START_MS
  while (Date.now() < end && !signal?.aborted) {
    const file = join(directory, 'instance.json')
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as InstanceInfo
    const failure = join(directory, 'failure')
    if (existsSync(failure)) throw new Error(readFileSync(failure, 'utf8'))
    await sleep(LOOK_MS)
  }
  throw new Error(`berth did not start within ${START_MS / 1000} s: see ${join(directory, 'log')}.`)
}
