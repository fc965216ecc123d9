import type { Sandbox } from '../compute/sandbox.ts'
import { messageOf } from '../runtime/error-info.ts'
import { AppError, AppFailure, type AppPlan } from './app-runtime/plan.ts'
import { toWorkers } from './app-runtime/process.ts'
import type { AppCrash, AppState, SupervisorOptions } from './app-runtime/supervision.ts'
import { AppSupervisor } from './app-runtime/supervisor.ts'
import type { Exposure } from './exposure.ts'
import type { Preparation } from './preparation.ts'
import type { ServeFiles } from './sites/upstream.ts'
import { Workers } from './workers.ts'

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
interface AppResponderOptions extends Omit<SupervisorOptions, 'sandbox' | 'onState' | 'timing'> {
  serverId: string
  preparation: Preparation
  /** Site whose upstream follows what responds. */
  exposure: Exposure
  /** @throws ComputeError if the server does not run */
  sandbox: () => Sandbox
  /** Returns what responds with the files of a version. */
  serve: (version: AppVersion, folder: string, fallback: boolean) => ServeFiles
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
  /** Nothing, since there are workers alone. The replacement is as that of files. */
  | { readonly kind: 'workers'; readonly replacement: AppSupervisor | null }

const NOTHING: Responding = { kind: 'nothing' }

/**
 * Runs a version of an app: responds to its requests with its program or its files, points its site there, and runs its
 * workers.
 *
 *     any               ── files ────────────────► files
 *     nothing, program  ── a program ────────────► program
 *     files, workers    ── a program ────────────► files, workers with a replacement
 *     files, workers with a replacement ── it responds ─► program
 *     any               ── workers alone ────────► workers
 *     any               ── stop, serverStopping ─► nothing
 */
export class AppResponder {
  /** The programs that run beside what responds, or alone. */
  readonly workers: Workers
  readonly #options: AppResponderOptions
  /** Aborts when the app is stopped next. */
  #stopped = new AbortController()
  #responding: Responding = NOTHING
  /**
   * Whether the app is up, as reported last; null before the first report, as the record may predate a kill of berth.
   * Files are up, and workers while one runs. A program is up from its first response until it has given up or is stopped, also while it restarts
   * after a crash.
   */
  #isUp: boolean | null = null
  /** Whether the program has crashed and not responded since. */
  #hasCrashed = false

  constructor(options: AppResponderOptions) {
    this.#options = options
    this.workers = new Workers({
      ...options,
      onState: () => {
        if (this.#responding.kind === 'workers') this.#setIsUp(this.workers.areUp)
        options.onState(false)
      },
    })
  }

  /** Whether the app responds. */
  get isUp(): boolean {
    return this.#isUp === true
  }

  /** Why a program that ran does not respond any more; null if it responds, never ran, or was stopped. */
  get crash(): AppCrash | null {
    return this.#responding.kind === 'program' ? this.#responding.supervisor.crash : null
  }

  /**
   * Runs what a version needs before, and begins with it.
   *
   * @throws as `begin`; AppError if what it needs fails
   */
  async start(version: AppVersion, before: AppVersion | null, options: Partial<StartOptions>): Promise<void> {
    const { signal, withdrawn } = options
    const ends = [this.#stopped.signal, signal, withdrawn].filter((one) => one !== undefined)
    await this.#release(version, AbortSignal.any(ends))
    await this.begin(version, before, options)
  }

  /**
   * Makes a version respond. Resolves when it does, and its workers have run for 2 s. Until then, what responded before
   * goes on.
   *
   * @param before the version that is started again if one of workers alone crashes soon; null for none
   * @throws as `AppSupervisor.replace`; AppError if a worker crashes and there are workers alone
   */
  async begin(
    version: AppVersion,
    before: AppVersion | null = null,
    options: Partial<StartOptions> = {},
  ): Promise<void> {
    const { signal: stopped } = this.#stopped
    const { start } = version.plan
    if (start.kind === 'workers') return this.#startWorkers(version, before, options)
    if (start.kind === 'command') await this.#startProgram(this.#options.sandbox(), version, options)
    else {
      options.spawned?.()
      this.#startFiles(this.#options.serve(version, start.folder, start.fallback))
    }
    if (!stopped.aborted) await this.runWorkers(version)
  }

  /** Makes the workers of a version the ones that run. Resolves when each has run for 2 s or has ended. */
  async runWorkers(version: AppVersion): Promise<void> {
    await this.#runWorkers(version, false)
  }

  async #runWorkers({ plan, environment }: AppVersion, isOnlyTry: boolean): Promise<unknown[]> {
    const programs = toWorkers(plan, environment)
    if (programs.length === 0 && this.workers.list().length === 0) return []
    return this.workers.run(this.#options.sandbox(), programs, isOnlyTry)
  }

  /** Runs what has to succeed before a version starts. */
  async #release({ plan, environment }: AppVersion, signal: AbortSignal): Promise<void> {
    if (plan.release === null) return
    const { owner, serverId, sandbox, workspace, cwd: directory, log, preparation } = this.#options
    const location = { owner, serverId, directory, log, signal }
    const place = { ...location, sandbox: sandbox(), workspace: workspace() }
    try {
      await preparation.release(place, plan, environment)
    } catch (error) {
      if (error instanceof AppFailure) log.append('berth', error.summary)
      throw error
    }
  }

  /** Responds with files from now on. A program that runs is stopped when its requests are served. */
  #startFiles(serve: ServeFiles): void {
    const replaced = supervisorOf(this.#responding)
    this.#responding = { kind: 'files', replacement: null }
    const drained = this.#options.exposure.replace({ kind: 'files', serve })
    this.#setIsUp(true)
    if (replaced !== null) void drained.then(() => replaced.stop())
  }

  /** Runs a version of workers alone, and the version before again if one of them crashes soon. */
  async #startWorkers(
    version: AppVersion,
    before: AppVersion | null,
    { beforeFallback, withdrawn }: Partial<StartOptions>,
  ): Promise<void> {
    const replaced = supervisorOf(this.#responding)
    this.#responding = { kind: 'workers', replacement: null }
    this.#options.exposure.setUpstream({ kind: 'down', reason: 'It is a worker, which answers no requests.' })
    await replaced?.stop()
    const [failure] = await this.#runWorkers(version, true)
    if (failure === undefined && withdrawn?.aborted !== true) return
    // What has failed stays so; the others must not go on alone.
    await this.workers.stop()
    if (before !== null) {
      this.#options.log.append('berth', 'The version before is started again.')
      await beforeFallback?.()
      await this.begin(before).catch((error) => this.#options.log.append('berth', messageOf(error)))
    }
    withdrawn?.throwIfAborted()
    throw failure
  }

  /** Starts a program. Resolves when it responds. Until then, what responded before goes on. */
  async #startProgram(
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

  /** Stops the program or the files, and the workers. Requests get the reason. */
  async stop(reason: string): Promise<void> {
    const supervisor = supervisorOf(this.#responding)
    this.#forget()
    this.#options.exposure.setUpstream({ kind: 'down', reason })
    await Promise.all([supervisor?.stop(), this.workers.stop()])
    this.#setIsUp(false)
  }

  /** Notes that the server stops, and the program with it. Requests get the reason. */
  serverStopping(reason: string): void {
    this.#forget()
    this.#options.exposure.setUpstream({ kind: 'down', reason })
    this.#setIsUp(false)
  }

  /** Ignores the program from now on, because berth stops. Its server ends it. */
  release(): void {
    this.#forget()
    this.workers.release()
  }

  #forget(): void {
    this.#responding = NOTHING
    this.#stopped.abort(new AppError('The app was stopped.'))
    this.#stopped = new AbortController()
  }

  /** Returns the supervisor of programs in a sandbox. A new one is what responds, or replaces the files. */
  #superviseIn(sandbox: Sandbox): AppSupervisor {
    const present = supervisorOf(this.#responding)
    if (present?.sandbox === sandbox) return present
    const supervisor: AppSupervisor = new AppSupervisor({
      ...this.#options,
      sandbox,
      onState: (state) => {
        if (supervisorOf(this.#responding) === supervisor) this.#applyState(state, supervisor)
      },
    })
    this.#responding = goesOn(this.#responding)
      ? { kind: this.#responding.kind, replacement: supervisor }
      : { kind: 'program', supervisor }
    return supervisor
  }

  /** Points the site by the state of the program. Files or workers that it replaces go on until it responds. */
  #applyState(state: AppState, supervisor: AppSupervisor): void {
    if (goesOn(this.#responding) && state.kind !== 'healthy') return
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

/** Reports whether what responds goes on until a program that replaces it responds: files and workers do. */
const goesOn = (responding: Responding): responding is Extract<Responding, { replacement: unknown }> =>
  responding.kind === 'files' || responding.kind === 'workers'

/** Returns the supervisor of the program that responds, or will in place of files or workers; null if there is none. */
function supervisorOf(responding: Responding): AppSupervisor | null {
  if (goesOn(responding)) return responding.replacement
  return responding.kind === 'program' ? responding.supervisor : null
}
