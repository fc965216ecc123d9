import type { Sandbox } from '../compute/sandbox.ts'
import { messageOf } from '../runtime/error-info.ts'
import { AppError, AppFailure, type AppPlan } from './app-runtime/plan.ts'
import { workerPrograms } from './app-runtime/process.ts'
import {
  type AppCrash,
  describeEnd,
  type ProgramState,
  type StartOptions,
  type SupervisorOptions,
} from './app-runtime/supervision.ts'
import { AppSupervisor } from './app-runtime/supervisor.ts'
import type { AppEnvironment, Preparation } from './preparation.ts'
import type { ServeFiles, ServerPort, Site, SiteHost, SiteOptions, Upstream } from './sites/upstream.ts'
import { Workers } from './workers.ts'

/** A version of an app: how it is started, and its variables. */
export interface AppVersion {
  plan: AppPlan
  environment: AppEnvironment
}

/** The options of one start of an app. */
export interface AppStartOptions extends StartOptions {
  /** Stops it, and an earlier version too, if aborted before it responds. */
  signal: AbortSignal
}

/** What an app does, and what its requests get. */
interface AppState {
  readonly kind: AppStateKind
  readonly upstream: Upstream
}

/**
 * The states of an app.
 *
 * - `idle`: berth has not started it since berth itself started.
 * - `starting`: a version is brought up, and none responds.
 * - `up`: it responds, or its workers run.
 * - `restarting`: it was up, and its program starts again, after a crash or as another version that cannot run beside it.
 * - `down`: it was stopped, given up or not brought up.
 */
type AppStateKind = 'idle' | 'starting' | 'up' | 'restarting' | 'down'

/** What happens to an app, and the state that follows. The app stays in a state that is not named. */
export const TRANSITIONS = {
  /** A bring-up has begun. A version that responds goes on. */
  begun: { idle: 'starting', starting: 'starting', down: 'starting' },
  /** A bring-up has failed, or waits. A version that responds goes on. */
  failed: { idle: 'down', starting: 'down', down: 'down' },
  /** Its program starts, or will after a crash, and no other version responds meanwhile. */
  launched: {
    idle: 'starting',
    starting: 'starting',
    up: 'restarting',
    restarting: 'restarting',
    down: 'starting',
  },
  /** Its program or berth responds, or its workers run. */
  responded: { idle: 'up', starting: 'up', up: 'up', restarting: 'up', down: 'up' },
  /** Its program was given up or stopped, or its server stops. */
  ended: { idle: 'down', starting: 'down', up: 'down', restarting: 'down', down: 'down' },
} satisfies Record<string, Partial<Record<AppStateKind, AppStateKind>>>

/**
 * What listeners of an app are notified of.
 *
 * - `up`, `down`: it begins to respond, or stops.
 * - `recovered`: what its files describe responds, after a crash or a change of them.
 * - `changed`: its program or a worker is in another state, another program has its port or no longer has it, or a change of
 *   its files did not come up.
 */
export type AppChange = 'up' | 'down' | 'recovered' | 'changed'

/** The options of an `AppResponder`. */
interface AppResponderOptions extends Omit<SupervisorOptions, 'sandbox' | 'onState' | 'timing'> {
  serverId: string
  preparation: Preparation
  /** Opens the app's site, on this port and with this first label of its host name. */
  sites: SiteHost
  site: Pick<SiteOptions, 'port' | 'slug' | 'onUse'>
  /** What requests get before anything is started. */
  first: Upstream
  /** @throws ComputeError if the server does not run */
  sandbox: () => Sandbox
  /** Returns what responds with the files of a version. */
  serve: (version: AppVersion, folder: string, fallback: boolean) => ServeFiles
  /** Returns what responds while nothing else does, for this reason, or null while the app starts. */
  status: (reason: string | null) => ServeFiles
  onChange: (change: AppChange) => void
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

/** Milliseconds that a replaced app may take to finish its requests. */
const DRAIN_MS = 10_000

/**
 * Runs a version of an app: responds to its requests with its program or its files, points its site there, and runs its
 * workers. Its state follows `TRANSITIONS`.
 */
export class AppResponder {
  /** The programs that run beside what responds, or alone. */
  readonly workers: Workers
  readonly #options: AppResponderOptions
  /** Aborts when the app is stopped next. */
  #stopped = new AbortController()
  #responding: Responding = NOTHING
  #state: AppState
  /** Whether it was up, as reported last; null before the first report, as the record may predate a kill of berth. */
  #reported: boolean | null = null
  /** Whether the program has crashed and not responded since. */
  #hasCrashed = false
  #site: Promise<Site> | null = null
  #isClosed = false
  #isPortTaken = false

  constructor(options: AppResponderOptions) {
    this.#options = options
    this.#state = { kind: 'idle', upstream: this.#described(options.first) }
    this.workers = new Workers({
      ...options,
      onState: () => {
        if (this.#responding.kind === 'workers') this.#apply(this.workers.areUp ? 'responded' : 'ended')
        options.onChange('changed')
      },
    })
  }

  /**
   * Whether the app is up. A program is from its first response until it was given up or is stopped, also while it restarts
   * after a crash.
   */
  get isUp(): boolean {
    return this.#state.kind === 'up' || this.#state.kind === 'restarting'
  }

  /** What requests to the app get. */
  get upstream(): Upstream {
    return this.#state.upstream
  }

  /** Whether another program has the port of the app's site, which is open. */
  get isPortTaken(): boolean {
    return this.#isPortTaken
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
  async start(
    version: AppVersion,
    before: AppVersion | null,
    options: Partial<AppStartOptions>,
  ): Promise<void> {
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
    options: Partial<AppStartOptions> = {},
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
    const programs = workerPrograms(plan, environment)
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
    const before = this.#state.upstream
    this.#apply('responded', { kind: 'files', serve })
    const drained = this.#drain(before)
    if (replaced !== null) void drained.then(() => replaced.stop())
  }

  /** Runs a version of workers alone, and the version before again if one of them crashes soon. */
  async #startWorkers(
    version: AppVersion,
    before: AppVersion | null,
    { beforeFallback, withdrawn }: Partial<AppStartOptions>,
  ): Promise<void> {
    const replaced = supervisorOf(this.#responding)
    this.#responding = { kind: 'workers', replacement: null }
    this.#point({ kind: 'down', reason: 'It is a worker, which answers no requests.' })
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
    { signal, ...options }: Partial<AppStartOptions>,
  ): Promise<void> {
    const supervisor = this.#superviseIn(sandbox)
    this.#apply('begun', { kind: 'starting' })
    signal?.throwIfAborted()
    const drained = (port: number) => this.#drained({ server: sandbox, port })
    const started = supervisor.replace(plan, environment, drained, options)
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
    this.#point({ kind: 'down', reason })
    await Promise.all([supervisor?.stop(), this.workers.stop()])
    this.#apply('ended')
  }

  /** Notes that the server stops, and the program with it. Requests get the reason. */
  serverStopping(reason: string): void {
    this.#forget()
    this.#apply('ended', { kind: 'down', reason })
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
        if (supervisorOf(this.#responding) === supervisor) this.#follow(state, supervisor)
      },
    })
    this.#responding = goesOn(this.#responding)
      ? { kind: this.#responding.kind, replacement: supervisor }
      : { kind: 'program', supervisor }
    return supervisor
  }

  /** Follows the state of the program. Files or workers that it replaces go on until it responds. */
  #follow(state: ProgramState, supervisor: AppSupervisor): void {
    if (goesOn(this.#responding) && state.kind !== 'healthy') return
    this.#responding = { kind: 'program', supervisor }
    const hasCrashed = supervisor.crash !== null
    switch (state.kind) {
      case 'starting':
      case 'restarting':
        this.#apply('launched', { kind: 'starting', hasCrashed })
        break
      case 'healthy':
        this.#apply('responded', {
          ...{ kind: 'app', server: supervisor.sandbox, port: state.port, host: state.host },
        })
        break
      case 'given_up':
        this.#apply('ended', { kind: 'down', reason: state.reason })
        break
      case 'stopped':
        this.#apply('ended')
        break
    }
    const hasRecovered = this.#hasCrashed && state.kind === 'healthy'
    this.#hasCrashed = hasCrashed
    if (hasRecovered) this.#options.onChange('recovered')
    this.#options.onChange('changed')
  }

  /** Makes requests wait for the app, unless it responds already. */
  markStarting(): void {
    this.#apply('begun', { kind: 'starting' })
  }

  /** Sets the reason that requests get while the app does not run, unless it responds already. */
  markDown(reason: string): void {
    this.#apply('failed', { kind: 'down', reason })
  }

  /**
   * Changes the state as `TRANSITIONS` says.
   *
   * @param upstream what requests get in the next state, by default what they get now
   */
  #apply(event: keyof typeof TRANSITIONS, upstream?: Upstream): void {
    const next: Partial<Record<AppStateKind, AppStateKind>> = TRANSITIONS[event]
    const kind = next[this.#state.kind]
    if (kind === undefined) return
    this.#state = { ...this.#state, kind }
    if (upstream !== undefined) this.#point(upstream)
    const isReported = event === 'responded' || event === 'ended'
    if (!isReported || this.#reported === this.isUp) return
    this.#reported = this.isUp
    this.#options.onChange(this.isUp ? 'up' : 'down')
  }

  /** Points the site to what requests get. */
  #point(upstream: Upstream): void {
    const described = this.#described(upstream)
    this.#state = { ...this.#state, upstream: described }
    void this.#site?.then((site) => site.setUpstream(described))
  }

  /** Has the app described in place of its responses. */
  #described(upstream: Upstream): Upstream {
    const { status } = this.#options
    if (upstream.kind === 'down') return { kind: 'files', serve: status(upstream.reason) }
    return upstream.kind === 'starting' ? { ...upstream, late: status(null) } : upstream
  }

  /** Opens the app's site. Does nothing after `closePermanently`. */
  async open(): Promise<void> {
    if (this.#isClosed) return
    this.#site ??= this.#options.sites.open(this.#siteOptions())
    const site = await this.#site
    site.setUpstream(this.#state.upstream)
  }

  #siteOptions(): SiteOptions {
    const { serverId, site, log, clock, onChange } = this.#options
    const { slug } = site
    return {
      ...site,
      crash: () => {
        const { crash } = this
        return (
          crash && `${describeEnd(crash, clock.now())} Its log tells why: ${logCommand({ slug, serverId })}`
        )
      },
      onListenFailure: (reason) => log.append('berth', reason),
      onPortTaken: (isTaken) => {
        this.#isPortTaken = isTaken
        onChange('changed')
      },
    }
  }

  /** Closes the app's site. */
  async close(): Promise<void> {
    const site = this.#site
    this.#site = null
    await (await site)?.close()
    this.#isPortTaken = false
  }

  /** Makes `open` do nothing from now on. */
  closePermanently(): void {
    this.#isClosed = true
  }

  /** Resolves when no request is under way at an app's port. */
  async #drained(port: ServerPort): Promise<void> {
    await (await this.#site)?.drained(port)
  }

  /** Resolves when the requests under way at what responded are served, or after ten seconds. */
  async #drain(before: Upstream): Promise<void> {
    if (before.kind === 'app') await Promise.race([this.#drained(before), Bun.sleep(DRAIN_MS)])
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

/** Returns the command that shows an app's log. */
export const logCommand = ({ slug, serverId }: { slug: string | null; serverId: string }): string =>
  slug === null ? `berth deployments logs ${serverId}` : `berth projects logs ${slug}`
