import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Limits } from '../../../src/compute/driver.ts'
import type { Sandbox } from '../../../src/compute/sandbox.ts'
import type { Workspace } from '../../../src/compute/workspace.ts'
import { AppLog } from '../../../src/hosting/app-runtime/log/log.ts'
import type { LogEntry } from '../../../src/hosting/app-runtime/log/log-file.ts'
import { type AppPlan, storedPlan } from '../../../src/hosting/app-runtime/plan.ts'
import { AppPorts } from '../../../src/hosting/app-runtime/ports.ts'
import type { ProgramState, SupervisorTiming } from '../../../src/hosting/app-runtime/supervision.ts'
import { AppSupervisor } from '../../../src/hosting/app-runtime/supervisor.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { Masks } from '../../../src/runtime/masks.ts'
import { Bench, LIMITS, until } from '../../compute/bench.ts'
import { fetchInside } from '../../compute/fetch-inside.ts'
import { MovedClock } from '../../support/clock.ts'

/** The tier that apps are tried in: the strongest that works here; the others are tried by their own suites. */
const TIER = await strongest()

/** Real time, cut short where a test waits for a limit. */
export const QUICK: Partial<SupervisorTiming> = {
  limitMs: 10_000,
  quietMs: 200,
  otherPortMs: 5000,
  followMs: 50,
  steadyMs: 100,
}

/** A server with a workspace, and all that apps on it need; leaves nothing behind. */
export class World implements AsyncDisposable {
  readonly clock = new MovedClock()
  readonly ports = new AppPorts()
  readonly masks = new Masks()
  readonly #logs: AppLog[] = []

  private constructor(
    readonly bench: Bench,
    readonly sandbox: Sandbox,
    readonly workspace: Workspace,
    readonly folder: string,
  ) {}

  static async open(limits: Partial<Limits> = {}): Promise<World> {
    const bench = new Bench(TIER)
    const handle = await bench.driver.create('srv_apps')
    const sandbox = await bench.driver.start('srv_apps', handle, { ...LIMITS, ...limits })
    const folder = mkdtempSync(join(tmpdir(), 'berth-apps-'))
    return new World(bench, sandbox, bench.driver.workspace(handle), folder)
  }

  /** Puts files into an app's folder. */
  async write(folder: string, files: Record<string, string>): Promise<void> {
    for (const [path, text] of Object.entries(files)) {
      await this.workspace.write(`${folder}/${path}`, new TextEncoder().encode(text))
    }
  }

  /** The log of an app. */
  async log(name = 'app'): Promise<AppLog> {
    const log = await openLog(join(this.folder, name), this.clock, this.masks)
    this.#logs.push(log)
    return log
  }

  /** A supervisor of the app in a folder, with the states that it went through. */
  async supervise(folder: string, timing: Partial<SupervisorTiming> = {}): Promise<Supervised> {
    const states: ProgramState[] = []
    const log = await this.log(folder)
    const supervisor = new AppSupervisor({
      owner: { kind: 'project', id: folder },
      sandbox: this.sandbox,
      cwd: folder,
      clock: this.clock,
      ports: this.ports,
      log,
      workspace: () => this.workspace,
      slugOf: () => null,
      onState: (state) => void states.push(state),
      timing: { ...QUICK, ...timing },
    })
    return new Supervised(supervisor, states, log, this.sandbox)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox.stop()
    for (const log of this.#logs) await log.remove()
    rmSync(this.folder, { recursive: true, force: true })
    await this.bench[Symbol.asyncDispose]()
  }
}

/** A supervisor under observation. */
export class Supervised {
  constructor(
    readonly supervisor: AppSupervisor,
    readonly states: ProgramState[],
    readonly log: AppLog,
    readonly sandbox: Sandbox,
  ) {}

  /** The kinds of the states so far. */
  get kinds(): string[] {
    return this.states.map(({ kind }) => kind)
  }

  /** The port that it answers on. */
  get port(): number {
    const { state } = this.supervisor
    if (state.kind !== 'healthy') throw new Error(`it is ${state.kind}`)
    return state.port
  }

  /** Waits until it is in such a state. */
  async becomes(kind: ProgramState['kind'], ms?: number): Promise<ProgramState> {
    await until(`the state ${kind}`, () => this.supervisor.state.kind === kind, ms)
    return this.supervisor.state
  }

  /** What the app answers. */
  async get(path = '/'): Promise<string> {
    return await fetchInside(this.sandbox, this.port, path)
  }

  /** The log's texts of a source. */
  async lines(source: LogEntry['source']): Promise<string[]> {
    const entries = await this.log.tail(1000)
    return entries.filter((entry) => entry.source === source).map(({ text }) => text)
  }
}

/** A log in a folder. */
export function openLog(dir: string, clock = new MovedClock(), masks = new Masks()): Promise<AppLog> {
  const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
  return AppLog.open({ dir, clock, masks, logger })
}

/** A plan of a command. */
export function planOf(command: string, rest: Partial<AppPlan> = {}, port: number | null = null): AppPlan {
  return storedPlan({ kind: 'command', start: { kind: 'command', command, port }, ...rest })
}

async function strongest(): Promise<'bubblewrap' | 'none'> {
  await using bench = new Bench('bubblewrap')
  return (await bench.driver.probe()).available ? 'bubblewrap' : 'none'
}

/** Whether a folder is there. */
export const isThere = (path: string): boolean => existsSync(path)
