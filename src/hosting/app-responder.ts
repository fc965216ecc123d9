import type { Sandbox } from '../compute/sandbox.ts'
import type { CommandOwner } from '../compute/server-process.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AppLog } from './app-runtime/log/log.ts'
import type { AppPlan } from './app-runtime/plan.ts'
import type { AppPorts } from './app-runtime/ports.ts'
import type { AppCrash, AppState, SupervisorOptions } from './app-runtime/supervision.ts'
import { AppSupervisor } from './app-runtime/supervisor.ts'
import type { Exposure } from './exposure.ts'
import type { ServeFiles } from './sites/upstream.ts'

/** Variables of an app's process. */
export type AppEnvironment = Readonly<Record<string, string>>

/** A version of an app: how it is started, and its variables. */
export interface AppVersion {
  plan: AppPlan
  environment: AppEnvironment
}

/** The options of one start of a program. */
export interface StartOptions {
  /** Called when the process listens, or has not ended soon, and its health is checked. */
  spawned: () => void
  /** Stops the program, and an earlier version too, if aborted before it responds. */
  signal: AbortSignal
  /** Stops the program if aborted before it responds. An earlier version goes on. */
  withdrawn: AbortSignal
  /** Called if an earlier version that had to end first is started again. */
  beforeFallback: () => Promise<void>
}

/** The options of an `AppResponder`. */
interface AppResponderOptions {
  /** What the app's processes belong to. */
  owner: CommandOwner
  /** Site whose upstream follows what responds. */
  exposure: Exposure
  /** Directory that programs start in, relative to the server's workspace. */
  directory: string
  clock: Clock
  appPorts: AppPorts
  log: AppLog
  workspace: SupervisorOptions['workspace']
  slugOf: SupervisorOptions['slugOf']
  /** Called when the app begins to respond and when it stops. */
  onRunning: (running: boolean) => void
  /**
   * Called when a program starts, responds, crashes or ends, so that `crash` may be another.
   *
   * @param hasRecovered whether it responds again after a crash
   */
  onState: (hasRecovered: boolean) => void
}

/** What responds to an app's requests. */
type Responding =
  /** Nothing: the app never started or was stopped, or its server stopped. */
  | { readonly kind: 'nothing' }
  /** A program, which may also be starting, restarting after a crash, or given up. */
  | { readonly kind: 'program'; readonly supervisor: AppSupervisor }
  /** Files. The replacement is a program that takes over when it responds, if it ever does. */
  | { readonly kind: 'files'; readonly replacement: AppSupervisor | null }

const NOTHING: Responding = { kind: 'nothing' }

/**
 * Responds to an app's requests with its program or its files, and points its site there.
 *
 *     any               ── startFiles ───────────► files
 *     nothing, program  ── startProgram ─────────► program
 *     files             ── startProgram ─────────► files with a replacement
 *     files with a replacement ── it responds ───► program
 *     any               ── stop, serverStopping ─► nothing
 */
export class AppResponder {
  readonly #options: AppResponderOptions
  #responding: Responding = NOTHING
  /**
   * Whether the app is up, as reported last; null before the first report, as the record may predate a kill of berth.
   * Files are up. A program is up from its first response until it has given up or is stopped, also while it restarts
   * after a crash.
   */
  #isUp: boolean | null = null
  /** Whether the program has crashed and not responded since. */
  #hasCrashed = false

  constructor(options: AppResponderOptions) {
    this.#options = options
  }

  /** Whether the app responds. */
  get isUp(): boolean {
    return this.#isUp === true
  }

  /** Why a program that ran does not respond any more; null if it responds, never ran, or was stopped. */
  get crash(): AppCrash | null {
    return this.#responding.kind === 'program' ? this.#responding.supervisor.crash : null
  }

  /** Responds with files from now on. A program that runs is stopped when its requests are served. */
  startFiles(serve: ServeFiles): void {
    const replaced = supervisorOf(this.#responding)
    this.#responding = { kind: 'files', replacement: null }
    const drained = this.#options.exposure.replace({ kind: 'files', serve })
    this.#setIsUp(true)
    if (replaced !== null) void drained.then(() => replaced.stop())
  }

  /**
   * Starts a program. Resolves when it responds. Until then, what responded before goes on.
   *
   * @throws as `AppSupervisor.replace`
   */
  async startProgram(
    sandbox: Sandbox,
    { plan, environment }: AppVersion,
    { spawned, signal, withdrawn, beforeFallback }: Partial<StartOptions>,
  ): Promise<void> {
    const { exposure } = this.#options
    const supervisor = this.#superviseIn(sandbox)
    if (!this.isUp) exposure.setUpstream({ kind: 'starting' })
    signal?.throwIfAborted()
    const drained = (port: number) => exposure.drained({ server: sandbox, port })
    const started = supervisor.replace(
      ...([plan, environment, drained, beforeFallback, withdrawn, spawned] as const),
    )
    const stop = () => void supervisor.stop()
    signal?.addEventListener('abort', stop)
    try {
      await started
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Stops the program or the files. Requests get the reason. */
  async stop(reason: string): Promise<void> {
    const supervisor = supervisorOf(this.#responding)
    this.#responding = NOTHING
    this.#options.exposure.setUpstream({ kind: 'down', reason })
    await supervisor?.stop()
    this.#setIsUp(false)
  }

  /** Notes that the server stops, and the program with it. Requests get the reason. */
  serverStopping(reason: string): void {
    this.release()
    this.#options.exposure.setUpstream({ kind: 'down', reason })
    this.#setIsUp(false)
  }

  /** Ignores the program from now on, because berth stops. Its server ends it. */
  release(): void {
    this.#responding = NOTHING
  }

  /** Returns the supervisor of programs in a sandbox. A new one is what responds, or replaces the files. */
  #superviseIn(sandbox: Sandbox): AppSupervisor {
    const present = supervisorOf(this.#responding)
    if (present?.sandbox === sandbox) return present
    const { owner, directory, clock, appPorts, log, workspace, slugOf } = this.#options
    const supervisor: AppSupervisor = new AppSupervisor({
      ...{ owner, sandbox, clock, log, workspace, slugOf },
      cwd: directory,
      ports: appPorts,
      onState: (state) => {
        if (supervisorOf(this.#responding) === supervisor) this.#applyState(state, supervisor)
      },
    })
    this.#responding =
      this.#responding.kind === 'files'
        ? { kind: 'files', replacement: supervisor }
        : { kind: 'program', supervisor }
    return supervisor
  }

  /** Points the site by the state of the program. Files that it replaces respond until it does. */
  #applyState(state: AppState, supervisor: AppSupervisor): void {
    if (this.#responding.kind === 'files' && state.kind !== 'healthy') return
    this.#responding = { kind: 'program', supervisor }
    const { exposure } = this.#options
    switch (state.kind) {
      case 'starting':
      case 'restarting':
        exposure.setUpstream({ kind: 'starting', hasCrashed: supervisor.crash !== null })
        break
      case 'healthy':
        exposure.setUpstream({ kind: 'app', server: supervisor.sandbox, port: state.port, host: state.host })
        this.#setIsUp(true)
        break
      case 'given_up':
        exposure.setUpstream({ kind: 'down', reason: state.reason })
        this.#setIsUp(false)
        break
      case 'stopped':
        this.#setIsUp(false)
        break
    }
    const hasRecovered = this.#hasCrashed && state.kind === 'healthy'
    this.#hasCrashed = supervisor.crash !== null
    this.#options.onState(hasRecovered)
  }

  #setIsUp(isUp: boolean): void {
    if (this.#isUp === isUp) return
    this.#isUp = isUp
    this.#options.onRunning(isUp)
  }
}

/** Returns the supervisor of the program that responds, or will in place of files; null if there is none. */
function supervisorOf(responding: Responding): AppSupervisor | null {
  switch (responding.kind) {
    case 'nothing':
      return null
    case 'program':
      return responding.supervisor
    case 'files':
      return responding.replacement
  }
}
