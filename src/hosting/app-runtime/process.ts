import { ComputeError } from '../../compute/compute-error.ts'
import type { Execution } from '../../compute/execution.ts'
import type { RefusalCollector } from '../../compute/outbound-control.ts'
import type { Sandbox } from '../../compute/sandbox.ts'
import type { CommandOwner } from '../../compute/server-process.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import { describeExitCode } from '../../runtime/exit-code.ts'
import { once } from '../../runtime/once.ts'
import { describeErrorAt } from '../page/health-error.ts'
import { type AppAddress, checkHealth } from './health.ts'
import { HealthSearch, type HealthTiming } from './health-search.ts'
import type { AppLog } from './log/log.ts'
import type { LogOutput } from './log/output.ts'
import { noteRefusals } from './log/refusals.ts'
import { socketHint } from './log/socket-hint.ts'
import { AppFailure, type AppPlan, inApp, type ProcessEnd } from './plan.ts'
import type { AppPort } from './ports.ts'
import { describeTakenPort, PORT_TAKEN } from './taken-port.ts'
import { describeWindowsScript } from './windows-script.ts'

/** An app that runs as a command. */
export interface AppProgram {
  readonly command: string
  /** The command as its author or detection has it, without the change to its directory and PATH. */
  readonly shown: string
  /** Where it runs, relative to the app's source. */
  readonly directory: string
  readonly health: string
  /** The only port that it can listen on; null for the one in PORT. */
  readonly port: number | null
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

/** Variables of every app, unless it sets its own. */
const DEFAULT_ENV = { NODE_ENV: 'production', PYTHONUNBUFFERED: '1' }

/**
 * Combines a plan with variables.
 *
 * @throws TypeError for files, which need no process
 */
export function toProgram(plan: AppPlan, env: Readonly<Record<string, string>>): AppProgram {
  const { start, health, release } = plan
  if (start.kind !== 'command') throw new TypeError('Files are served without a process.')
  const defaults = Object.entries(plan.env).flatMap(([name, { default: value }]) =>
    value === null ? [] : [[name, value] as const],
  )
  // Heroku runs the release command with the app's variables before the new version starts.
  const shown = release === null ? start.command : `{ ${release}; } && { ${start.command}; }`
  return {
    command: inApp(plan, shown),
    shown,
    directory: plan.directory,
    port: start.port,
    health,
    env: { ...DEFAULT_ENV, ...plan.variables, ...Object.fromEntries(defaults), ...env },
  }
}

/** The options of an `AppProcess`. */
export interface ProcessOptions {
  /** What it belongs to. */
  owner: CommandOwner
  sandbox: Sandbox
  /** The app's directory, relative to the workspace. */
  cwd: string
  program: AppProgram
  port: AppPort
  log: AppLog
  clock: Clock
  timing: HealthTiming
  /** @throws ComputeError if the server is gone */
  workspace: () => Workspace
  /** See `describeTakenPort`. */
  slugOf(id: string): string | null
}

/** One process of an app, from its start to its end. */
export class AppProcess {
  readonly #options: ProcessOptions
  readonly #output: LogOutput
  readonly #refusals: RefusalCollector
  readonly #execution: Execution
  readonly #ended = new AbortController()
  readonly #search: HealthSearch
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
      'app',
      (line) => {
        hint?.(line)
        if (PORT_TAKEN.test(line)) this.#onPortTaken()
      },
      (text) => !this.#isEnding || !SCRIPT_ENDED.test(text),
    )
    this.#execution = sandbox.exec({
      command: program.command,
      cwd,
      env: { ...program.env, PORT: String(port.port), HOST: '127.0.0.1' },
      timeoutMs: null,
      owner,
      background: 'ends',
      onOutput: (stream, data) => {
        this.#printedAt = performance.now()
        return this.#output.write(stream, data)
      },
    })
    this.#search = this.#newSearch()
    this.#refusals = noteRefusals(sandbox, log)
    this.exited = this.#waitForExit()
  }

  /** The assigned port. */
  get port(): number {
    return this.#options.port.port
  }

  /** Whether the process has ended. */
  get whenEnded(): boolean {
    return this.#ended.signal.aborted
  }

  /**
   * Resolves with the address on which the app responds, as soon as it does.
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
  ): Promise<AppAddress> {
    this.#onChecked = once(onChecked)
    const soon = setTimeout(() => this.whenEnded || this.#onChecked(), STARTED_MS)
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
    if (this.whenEnded) throw await this.#endedTooSoon(await this.exited)
    const taken = await this.#describeTakenPort()
    const limit = blocked.signal.aborted ? '' : ` within ${this.#options.timing.limitMs / 1000} s`
    throw new AppFailure(taken === null ? found : `The app did not respond${limit}. ${taken}`, last)
  }

  /** Returns the error of a start that ended before it responded, with the cause as far as it can be known. */
  async #endedTooSoon(end: ProcessEnd): Promise<AppFailure> {
    const { last } = this.#output
    const { program, cwd, workspace } = this.#options
    const script = await describeWindowsScript({
      ...{ command: program.shown, exitCode: end.exitCode, lines: last, workspace: workspace() },
      cwd: [cwd, program.directory].filter(Boolean).join('/'),
    }).catch(() => null)
    const taken = script === null ? await this.#describeTakenPort() : null
    const reason =
      script !== null && end.exitCode !== null
        ? `it ${describeExitCode(end.exitCode)}. ${script}`
        : end.exitCode === 0 && !this.#hasListened
          ? `it ended without having listened, with exit code 0: ${NO_SERVER}`
          : end.reason
    const summary = `The app did not start: ${reason}${taken === null ? '' : ` ${taken}`}`
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
  waitForAssignedPort(): Promise<AppAddress | null> {
    return this.#search.follow(this.#ended.signal)
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

  #newSearch(): HealthSearch {
    const { sandbox, program, timing, log, clock } = this.#options
    const { health: path } = program
    return new HealthSearch({
      assignedPort: this.port,
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
    this.#options.port.release()
    this.#ended.abort()
    return end
  }
}

/** What a program is that ends by itself, with the remedy. */
const NO_SERVER =
  'it is no server. "start" in berth.json has to be a command that listens on the port in the variable PORT and goes on.'

function describeExit(code: number): string {
  if (code === 127) return 'its command was not found (exit code 127).'
  return `it ${describeExitCode(code)}.`
}
