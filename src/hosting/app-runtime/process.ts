import {
  type CommandOwner,
  ComputeError,
  type Execution,
  type RefusalCollector,
  type Sandbox,
} from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import { describeExitCode } from '../../runtime/exit-code.ts'
import { once } from '../../runtime/once.ts'
import { pause } from '../../runtime/wait.ts'
import { describeErrorAt } from '../page/causes.ts'
import { describeMissingTool } from '../tool-names.ts'
import {
  describeTakenPort,
  describeWindowsScript,
  noteRefusals,
  PORT_TAKEN,
  socketHint,
} from './failure-hints.ts'
import { type AppAddress, checkHealth } from './health.ts'
import { HealthSearch, type HealthTiming } from './health-search.ts'
import type { AppLog, LogOutput } from './log/log.ts'
import { AppFailure, type AppPlan, inApp, type ProcessEnd, runVariables } from './plan.ts'
import type { AppPort } from './ports.ts'

/** A command that runs: an app, or a worker beside it. */
export interface AppProgram {
  readonly command: string
  /** The command as its author or detection has it, without the change to its directory and PATH. */
  readonly shown: string
  /** Where it runs, relative to the app's source. */
  readonly directory: string
  /** What it is called at the beginning of a sentence. */
  readonly title: string
  /** The name of a worker, which has no port; null for the app. */
  readonly worker: string | null
  readonly health: string
  /** The only port that it can listen on; null for the one in PORT. */
  readonly port: number | null
  /** Milliseconds from its start to its first response; null for the usual ones. */
  readonly limitMs: number | null
  /** Its variables, without PORT and HOST. */
  readonly env: Readonly<Record<string, string>>
}

/** Milliseconds after which a process that has not ended counts as started, whether it listens or not. */
const STARTED_MS = 500

/** Milliseconds that a program gets to do without a port that is taken, before it makes way. */
const YIELD_MS = 2000

/** Matches what programs that run scripts print when berth ends the script, which would look like a crash. */
const SCRIPT_ENDED =
  /^(?:error: script ".*" was terminated by signal|npm (?:ERR!|error)|error Command failed with (?:signal|exit code)|\s*ELIFECYCLE\b|Terminated$|Killed$)/

type Variables = Readonly<Record<string, string>>

/**
 * Combines the start command of a plan with variables.
 *
 * @throws TypeError for files and workers alone, which have none
 */
export function toProgram(plan: AppPlan, given: Variables): AppProgram {
  const { start, health, timeout } = plan
  if (start.kind !== 'command') throw new TypeError('There is no program that responds.')
  const { command, port } = start
  const limitMs = timeout === null ? null : timeout * 1000
  const title = 'The app'
  return { ...programOf(plan, command, given), title, worker: null, health, port, limitMs }
}

/** Returns the workers of a plan as programs. */
export const workerPrograms = (plan: AppPlan, given: Variables): AppProgram[] =>
  Object.entries(plan.workers).map(([worker, command]) => ({
    ...programOf(plan, command, given),
    title: `The worker ${JSON.stringify(worker)}`,
    ...{ worker, health: '/', port: null, limitMs: null },
  }))

const programOf = (plan: AppPlan, shown: string, given: Variables) => ({
  ...{ command: inApp(plan, shown), shown, directory: plan.directory },
  env: runVariables(plan, given),
})

/** The options of an `AppProcess`. */
export interface ProcessOptions {
  /** What it belongs to. */
  owner: CommandOwner
  sandbox: Sandbox
  /** The app's directory, relative to the workspace. */
  cwd: string
  program: AppProgram
  /** The port of an app; null for a worker. */
  port: AppPort | null
  log: AppLog
  clock: Clock
  timing: HealthTiming
  /** @throws ComputeError if the server is gone */
  workspace: () => Workspace
  /** See `describeTakenPort`. */
  slugOf(id: string): string | null
}

/** One process of an app or a worker, from its start to its end. */
export class AppProcess {
  readonly #options: ProcessOptions
  readonly #output: LogOutput
  readonly #refusals: RefusalCollector
  readonly #execution: Execution
  readonly #ended = new AbortController()
  readonly #search: HealthSearch | null
  #printedAt = performance.now()
  /** Whether berth ends it. */
  #isEnding = false
  #hasListened = false
  /** Called when it prints that a port is taken. */
  #onPortTaken = (): void => {}
  #onChecked = (): void => {}
  /** Resolves when the process and everything it started have ended and the output is logged. Never rejects. */
  readonly exited: Promise<ProcessEnd>

  /**
   * Starts the process.
   *
   * @throws ComputeError if the sandbox is gone
   */
  constructor(options: ProcessOptions) {
    this.#options = options
    const { owner, sandbox, cwd, program, port, log } = options
    const hint = socketHint(sandbox, (text) => log.append('berth', text))
    this.#output = log.output(
      program.worker === null ? 'app' : 'worker',
      (line) => {
        hint?.(line)
        if (PORT_TAKEN.test(line)) this.#onPortTaken()
      },
      (text) => !this.#isEnding || !SCRIPT_ENDED.test(text),
      program.worker ?? undefined,
    )
    this.#execution = sandbox.exec({
      command: program.command,
      cwd,
      env: { ...program.env, ...(port && { PORT: String(port.port), HOST: '127.0.0.1' }) },
      timeoutMs: null,
      owner,
      background: 'ends',
      onOutput: (stream, data) => {
        this.#printedAt = performance.now()
        return this.#output.write(stream, data)
      },
    })
    this.#search = port && this.#newSearch(port.port)
    this.#refusals = noteRefusals(sandbox, log)
    this.exited = this.#waitForExit()
  }

  /** The assigned port; null for a worker. */
  get port(): number | null {
    return this.#options.port?.port ?? null
  }

  /** Whether the process has ended. */
  get hasEnded(): boolean {
    return this.#ended.signal.aborted
  }

  /**
   * Resolves with the address on which the app responds, as soon as it does; with null for a worker that has run for 2 s
   * or has done its work.
   *
   * @param onChecked called once when it listens, or has not ended soon
   * @param yields whether it makes way soon if it prints that a port is taken and does not respond
   * @throws AppFailure with the last lines of output if it ends before, does not respond in time or makes way; the
   * signal's reason
   */
  async waitUntilHealthy(
    signal: AbortSignal,
    onChecked: () => void = () => {},
    yields: boolean = false,
  ): Promise<AppAddress | null> {
    if (this.#search === null) return await this.#waitUntilSteady(signal)
    this.#onChecked = once(onChecked)
    const soon = setTimeout(() => this.hasEnded || this.#onChecked(), STARTED_MS)
    const blocked = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    if (yields) this.#onPortTaken = once(() => (timer = setTimeout(() => blocked.abort(), YIELD_MS)))
    const found = await this.#search
      .run(AbortSignal.any([signal, this.#ended.signal, blocked.signal]))
      .finally(() => {
        clearTimeout(soon)
        clearTimeout(timer)
      })
    signal.throwIfAborted()
    if (typeof found === 'object') return found
    const { last } = this.#output
    if (this.hasEnded) throw await this.#endedTooSoon(await this.exited)
    const taken = await this.#describeTakenPort()
    const limit = blocked.signal.aborted ? '' : ` within ${this.#options.timing.limitMs / 1000} s`
    throw new AppFailure(taken === null ? found : `The app did not respond${limit}. ${taken}`, last)
  }

  /** Resolves when a worker has run for some time, or has ended with success. */
  async #waitUntilSteady(signal: AbortSignal): Promise<null> {
    await pause(this.#options.timing.steadyMs, signal, this.#ended.signal)
    signal.throwIfAborted()
    if (!this.hasEnded) return null
    const end = await this.exited
    if (end.exitCode === 0) return null
    throw await this.#endedTooSoon(end)
  }

  /** Returns the error of a start that ended before it responded, with the cause as far as it can be known. */
  async #endedTooSoon(end: ProcessEnd): Promise<AppFailure> {
    const { last } = this.#output
    const { program, cwd, workspace, sandbox } = this.#options
    const script = await describeWindowsScript({
      ...{ command: program.shown, exitCode: end.exitCode, lines: last, workspace: workspace() },
      cwd: [cwd, program.directory].filter(Boolean).join('/'),
    }).catch(() => null)
    const why = script ?? describeMissingTool(last, sandbox.hasImage ?? false)
    const taken = why === null ? await this.#describeTakenPort() : null
    const reason =
      why !== null && end.exitCode !== null
        ? `it ${describeExitCode(end.exitCode)}. ${why}`
        : end.exitCode === 0 && program.worker === null && !this.#hasListened
          ? `it ended without having listened, with exit code 0: ${NO_SERVER}`
          : end.reason
    const summary = `${program.title} did not start: ${reason}${taken === null ? '' : ` ${taken}`}`
    return new AppFailure(summary, last, end, !this.#hasListened)
  }

  #describeTakenPort(): Promise<string | null> {
    const { owner, sandbox, slugOf } = this.#options
    return describeTakenPort({ owner, sandbox, lines: this.#output.last, slugOf })
  }

  /**
   * Resolves with the address of the assigned port as soon as an app that responds on another one responds there too;
   * null if it ends before.
   */
  async waitForAssignedPort(): Promise<AppAddress | null> {
    return this.#search?.follow(this.#ended.signal) ?? null
  }

  /** Reports whether its processes listen on other ports than the assigned one. */
  async hasOtherPorts(): Promise<boolean> {
    const { listening } = await this.#execution.activity()
    return listening?.some(({ port }) => port !== this.port) ?? true
  }

  /** Sends SIGTERM, and SIGKILL after `graceMs` milliseconds. Resolves when the process has ended. */
  async end(graceMs: number): Promise<void> {
    this.#isEnding = true
    this.#execution.cancel(graceMs)
    await this.exited
  }

  #newSearch(assignedPort: number): HealthSearch {
    const { sandbox, program, timing, log, clock } = this.#options
    const { health: path } = program
    return new HealthSearch({
      assignedPort,
      isOnlyPort: program.port !== null,
      activity: () => this.#execution.activity(),
      sinceOutput: () => performance.now() - this.#printedAt,
      check: (port, hosts, timeoutMs, signal) => checkHealth(sandbox, port, hosts, path, timeoutMs, signal),
      describeError: (status, address) => describeErrorAt(sandbox, address, path, status),
      path,
      timing,
      onListening: () => {
        this.#hasListened = true
        this.#onChecked()
      },
      onUnhealthy(status, port) {
        const since = toIso(clock.now())
        log.append(
          'berth',
          `The app answers GET ${path} on port ${port} with status ${status} since ${since}. It is up when that is under 500, within ${timing.limitMs / 1000} s of its start. berth asks less often from now on.`,
        )
      },
    })
  }

  /** Resolves to why the process ended, when it has and nothing of it is kept any more. */
  async #waitForExit(): Promise<ProcessEnd> {
    const end = await this.#execution.exit.then<ProcessEnd, ProcessEnd>(
      ({ exitCode }) => ({ reason: describeExit(exitCode), exitCode }),
      (error: unknown) => ({
        reason: error instanceof ComputeError ? error.message : `Its output could not be logged: ${error}`,
        exitCode: null,
      }),
    )
    void this.#refusals.end(true)
    this.#output.end()
    this.#options.port?.release()
    this.#ended.abort()
    return end
  }
}

/** What a program is that ends by itself, with the remedy. */
const NO_SERVER =
  'it is no server. "start" in berth.json has to be a command that listens on the port in the variable PORT and goes on. If it is a worker, which answers no requests, put "kind": "worker" there.'

function describeExit(code: number): string {
  if (code === 127) return 'its command was not found (exit code 127).'
  return `it ${describeExitCode(code)}.`
}
