import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ComputeDriver, Limits, ServerHandle } from '../../src/compute/driver.ts'
import { localDrivers } from '../../src/compute/drivers.ts'
import { ServerDirectories } from '../../src/compute/local/server-directories.ts'
import { listProcesses, readMarker } from '../../src/compute/processes.ts'
import type { ExecCommand, ExecExit, Sandbox } from '../../src/compute/sandbox.ts'
import type { Isolation } from '../../src/config/config.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { type SelfCommand, selfCommand } from '../../src/runtime/self.ts'
import { ownerMarker } from '../support/engines/owner-marker.ts'
import { until as holds } from '../support/processes.ts'
import { PipedDriver } from './piped-driver.ts'

/** Reports whether servers are on an engine. */
export const isEngine = (name: Subject): name is EngineSubject => engines.has(name)

/** Limits that the suite's harmless commands do not notice. */
export const LIMITS: Limits = { cpus: 2, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 26 }

/** Folders that every system has, and nothing of the person's who runs the tests. */
export const TEST_PATH = '/usr/local/bin:/usr/bin:/bin'

/** How berth is started again: the executable under test, else from source. */
export const SELF: SelfCommand = process.env.BERTH_TEST_EXECUTABLE
  ? { argv: [process.env.BERTH_TEST_EXECUTABLE], compiled: true }
  : selfCommand()

/** A command's result with its output. */
export interface Result extends ExecExit {
  stdout: string
  stderr: string
}

/** What the suite tries: an isolation of this machine, servers that are reached by pipes and calls alone, or an engine. */
export type Subject = Isolation | 'piped' | EngineSubject

/** Servers on an engine, of which a test file has registered a driver. */
export type EngineSubject = 'docker' | 'podman' | 'kubernetes'

const engines = new Map<Subject, (dataDir: string) => ComputeDriver>()

/** Has `driverOn` and `Bench` use a driver for an engine. */
export const registerEngine = (name: EngineSubject, driver: (dataDir: string) => ComputeDriver): void =>
  void engines.set(name, driver)

/** The named driver on a data folder. */
export function driverOn(
  name: Subject,
  dataDir: string,
  path = TEST_PATH,
  options: { allowUnixSockets?: boolean } = {},
): ComputeDriver {
  const engine = engines.get(name)
  if (engine !== undefined) return engine(dataDir)
  if (name === 'piped') {
    return new PipedDriver(driverOn('none', dataDir, path), { dataDir, self: SELF, path })
  }
  const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
  // A home without version managers: what a person has installed differs from machine to machine.
  const variables = { HOME: join(dataDir, 'no-home') }
  const found = localDrivers({ dataDir, self: SELF, path, variables, logger, ...options }).find(
    (driver) => driver.name === name,
  )
  if (found === undefined) throw new Error(`no driver ${name}`)
  return found
}

/** A driver on a folder of its own. Disposing of it fails where a process is left. */
export class Bench implements AsyncDisposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'berth-compute-'))
  readonly driver: ComputeDriver
  readonly #sandboxes: Sandbox[] = []
  readonly #ids = new Set<string>()
  /** Held as an instance holds its own: `doctor --leaks --fix` of another test ends what has no instance. */
  readonly #lock = openSync(join(this.dataDir, 'lock'), 'w')

  constructor(
    readonly name: Subject,
    options: { allowUnixSockets?: boolean } = {},
  ) {
    this.driver = driverOn(name, this.dataDir, TEST_PATH, options)
  }

  /** A new server, started. */
  async start(id = 'srv_a', limits: Partial<Limits> = {}): Promise<Sandbox> {
    return this.startAgain(id, await this.driver.create(id), limits)
  }

  /** A server that exists, started. */
  async startAgain(id: string, handle: ServerHandle, limits: Partial<Limits> = {}): Promise<Sandbox> {
    const sandbox = await this.driver.start(id, handle, { ...LIMITS, ...limits })
    this.#sandboxes.push(sandbox)
    this.#ids.add(id)
    return sandbox
  }

  /** Pids of all that commands on this data folder's servers started, as the host sees them. */
  async commands(): Promise<number[]> {
    return processesMarked(
      isEngine(this.name) ? ownerMarker(this.dataDir) : new ServerDirectories(this.dataDir).dataMarker(),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sandbox of this.#sandboxes) await sandbox.stop()
    const left = await this.commands()
    // Groups of servers that a killed host ran.
    const others = serversIn(this.dataDir).filter((id) => !this.#ids.has(id))
    if (others.length > 0)
      await this.driver
        .takeStock(
          others.map((id) => ({ kind: 'local', folder: `servers/${id}` })),
          [],
        )
        .end()
    closeSync(this.#lock)
    rmSync(this.dataDir, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`processes left behind: ${left.map(describeProcess).join(', ')}`)
  }
}

/** Pids of commands (not sandboxd) with markers that begin so. */
export function processesMarked(marker: string): number[] {
  return listProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => {
      const found = readMarker(pid)
      return found?.startsWith(marker) && !found.endsWith('00000000')
    })
}

/** Runs a command to its end and collects its output. */
export async function run(
  sandbox: Sandbox,
  command: string,
  rest: Partial<ExecCommand> = {},
): Promise<Result> {
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const output = { stdout: '', stderr: '' }
  const { exit } = sandbox.exec({
    command,
    timeoutMs: 20_000,
    onOutput(stream, data) {
      output[stream] += decoders[stream].decode(data, { stream: true })
    },
    ...rest,
  })
  return { ...(await exit), ...output }
}

/**
 * Reports whether no command can end or stop sandboxd, since it is process 1 of the sandbox: bubblewrap without Landlock.
 * Says on standard error that something is passed over then.
 */
export async function isSandboxdSafe(sandbox: Sandbox): Promise<boolean> {
  const { stdout } = await run(sandbox, 'echo $PPID')
  if (stdout !== '1\n') return false
  console.error('SKIP the end of sandboxd by a command: it is process 1')
  return true
}

/** Waits until a condition holds; fails with `what` when it does not in time. */
export const until = (what: string, condition: () => unknown, ms = 20_000): Promise<void> =>
  holds(async () => Boolean(await condition()), what, ms)

function serversIn(dataDir: string): string[] {
  const folder = join(dataDir, 'servers')
  return existsSync(folder) ? readdirSync(folder) : []
}

function describeProcess(pid: number): string {
  try {
    return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`
  } catch {
    return String(pid)
  }
}
