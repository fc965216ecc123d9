import type { Sandbox } from '../compute/driver.ts'
import { ComputeError } from '../compute/driver.ts'
import type { Workspace } from '../compute/workspace.ts'
import type { Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import type { Logger } from '../runtime/logger.ts'
import { Masks } from '../runtime/masks.ts'
import { AppLog } from './app-runtime/log/log.ts'
import type { AppPlan } from './app-runtime/plan.ts'
import type { AppPorts } from './app-runtime/ports.ts'
import type { AppState } from './app-runtime/supervision.ts'
import { AppSupervisor } from './app-runtime/supervisor.ts'
import type { AppServers } from './app-servers.ts'
import { Exposure } from './exposure.ts'
import type { Preparation } from './preparation.ts'
import type { SiteHost, Upstream } from './sites/upstream.ts'
import { SourceWatch } from './source-watch.ts'
import { LiveReload } from './static/reload.ts'
import { serveFiles } from './static/serve.ts'

/** What makes one app another than the others. */
export interface HostedAppOptions {
  /** The id of the project, or of the server that publishes it. */
  id: string
  serverId: string
  /** Relative to the server's workspace; empty for all of it. */
  folder: string
  /** The port of its site. */
  port: number
  /** The label of its host name; null for none. */
  slug: string | null
  /** Whether it has run before, and is to run again with its server. */
  hasRun: boolean
  /** Called when it begins to answer, and when it does not any more. */
  onRunning: (running: boolean) => void
  /** Whether a path, relative to the workspace and in its names, is not for callers where files are served. */
  hides?: (names: readonly string[]) => boolean
}

/** What all hosted apps share. */
export interface HostedAppParts {
  clock: Clock
  logger: Logger
  servers: AppServers
  sites: SiteHost
  preparation: Preparation
  /** The ports that apps themselves listen on. */
  appPorts: AppPorts
  /** The folder of all logs. */
  logs: string
}

type Environment = Readonly<Record<string, string>>

/** What runs, or last ran. */
interface Version {
  plan: AppPlan
  environment: Environment
}

const NOT_STARTED: Upstream = { kind: 'down', reason: 'Nothing has been started here yet.' }

const ASLEEP: Upstream = { kind: 'down', reason: 'Its server sleeps. Start the server, and it runs again.' }

/** An app of a server behind a site of its own: its process or its files, its log, and the watch on its sources. */
export class HostedApp {
  readonly id: string
  readonly serverId: string
  readonly log: AppLog
  readonly #options: HostedAppOptions
  readonly #parts: HostedAppParts
  readonly #reload = new LiveReload()
  readonly #exposure: Exposure
  #supervisor: { of: Sandbox; supervisor: AppSupervisor } | null = null
  #version: Version | null = null
  #watch: SourceWatch | null = null
  /** How many do not want its files to be watched now. */
  #pauses = 0
  /** Files answer: a program that is started in their place takes over when it answers, and not before. */
  #servesFiles = false
  /** Null until it is known, and told, for the first time: what is recorded may be from before berth was killed. */
  #isUp: boolean | null = null
  /** The variables of a restart that is to come. */
  #next: Environment | null = null
  #restarting: Promise<void> | null = null

  /** Opens its log; nothing runs and nothing listens yet. */
  static async open(options: HostedAppOptions, parts: HostedAppParts): Promise<HostedApp> {
    const { clock, logger, logs } = parts
    const log = await AppLog.open({ dir: `${logs}/${options.id}`, clock, logger, masks: new Masks() })
    return new HostedApp(options, parts, log)
  }

  private constructor(options: HostedAppOptions, parts: HostedAppParts, log: AppLog) {
    this.id = options.id
    this.serverId = options.serverId
    this.log = log
    this.#options = options
    this.#parts = parts
    const { port, slug, serverId, hasRun } = options
    const { servers, sites } = parts
    const asleep = servers.isSleeping(serverId)
    const first: Upstream = !hasRun ? NOT_STARTED : asleep ? ASLEEP : { kind: 'starting' }
    this.#exposure = new Exposure(sites, { port, slug, onUse: () => servers.hold(serverId) }, first)
  }

  /** Whether it answers. */
  get isUp(): boolean {
    return this.#isUp === true
  }

  /** Shows none of these values in the log from now on. */
  hide(environment: Environment): void {
    this.log.masks.add(Object.values(environment))
  }

  /** The end of its log as text. */
  async lastLines(count: number): Promise<string> {
    return (await this.log.tail(count)).map(({ text }) => text).join('\n')
  }

  /** Has its site listen; one that was removed has none any more. */
  expose(): Promise<void> {
    return this.#exposure.open()
  }

  /** Has nothing listen for it any more. */
  conceal(): Promise<void> {
    return this.#exposure.conceal()
  }

  /** Makes callers wait for the app, unless it responds already. */
  markStarting(): void {
    if (!this.#isUp) this.#exposure.point({ kind: 'starting' })
  }

  /** Responds to callers with the reason why the app does not run, unless it responds already. */
  markDown(reason: string): void {
    if (!this.#isUp) this.#exposure.point({ kind: 'down', reason })
  }

  /**
   * Starts it, or puts this version in the place of the one that runs; resolves when it answers.
   *
   * @param spawned called when it was started and is being asked for its health
   * @param signal ends it, and what ran before too, where it is aborted before it answers
   * @throws AppError where it does not answer; what ran before goes on. ComputeError where the server does not run
   */
  async start(
    plan: AppPlan,
    environment: Environment,
    { spawned = () => {}, signal }: { spawned?: () => void; signal?: AbortSignal } = {},
  ): Promise<void> {
    const version = { plan, environment }
    const before = this.#version
    this.#version = version
    try {
      if (plan.start.kind === 'files') await this.#startFiles(plan, plan.start, spawned)
      else await this.#startProgram(version, spawned, signal)
    } catch (error) {
      // One that ran under an earlier berth is to be tried again when its variables change.
      if (this.#version === version) this.#version = before ?? (this.#options.hasRun ? version : null)
      throw error
    }
    await this.#watchSources()
  }

  /**
   * Runs it with other variables, where it runs. Of several calls that come while it restarts, the last one counts.
   *
   * @throws AppError where it does not answer with them
   */
  restart(environment: Environment): Promise<void> {
    this.#next = environment
    this.#restarting ??= this.#restartToLast().finally(() => {
      this.#restarting = null
    })
    return this.#restarting
  }

  async #restartToLast(): Promise<void> {
    for (let next = this.#next; next !== null; next = this.#next) {
      this.#next = null
      try {
        await this.#restart(next)
      } catch (error) {
        if (this.#next === null) throw error
      }
    }
  }

  async #restart(environment: Environment): Promise<void> {
    const version = this.#version
    if (version === null || this.#parts.servers.sandbox(this.serverId) === undefined) return
    if (version.plan.start.kind === 'command') await this.start(version.plan, environment)
    else version.environment = environment
  }

  /** Ends it; callers are told why. */
  async stop(reason: string): Promise<void> {
    this.#version = null
    this.#servesFiles = false
    await this.#unwatch()
    this.#exposure.point({ kind: 'down', reason })
    const ending = this.#supervisor?.supervisor.stop()
    this.#supervisor = null
    await ending
    this.#setUp(false)
  }

  /** Lets changes of its files pass until the returned function is called, to be called once. */
  async pauseWatch(): Promise<() => Promise<void>> {
    this.#pauses += 1
    await this.#unwatch()
    return async () => {
      this.#pauses -= 1
      if (this.#parts.servers.sandbox(this.serverId) !== undefined) await this.#watchSources()
    }
  }

  /** Its server stops, and its processes with it. */
  serverStopping(): void {
    this.#supervisor = null
    this.#servesFiles = false
    this.#exposure.point(ASLEEP)
    this.#setUp(false)
    void this.#unwatch()
  }

  /** Berth stops: its server ends the processes. */
  async close(): Promise<void> {
    this.#supervisor = null
    await this.#unwatch()
    await this.log.close()
  }

  /** Ends it and removes what is kept of it beside its files. */
  async remove(): Promise<void> {
    this.#exposure.closeForGood()
    await this.stop('It was removed.')
    await this.conceal()
    await this.log.remove()
  }

  async #startFiles(
    plan: AppPlan,
    { folder, fallback }: Extract<AppPlan['start'], { kind: 'files' }>,
    spawned: () => void,
  ): Promise<void> {
    spawned()
    const place = [this.#options.folder, folder].filter(Boolean).join('/')
    const reload = plan.watch ? this.#reload : null
    const above = place.split('/').filter(Boolean)
    const { hides } = this.#options
    const serve = serveFiles(this.#workspace(), place, {
      fallback,
      listing: true,
      reload,
      ...(hides && { hides: (names) => hides([...above, ...names]) }),
    })
    const supervisor = this.#supervisor?.supervisor
    this.#supervisor = null
    const served = this.#exposure.replace({ kind: 'files', serve })
    this.#servesFiles = true
    this.#setUp(true)
    if (supervisor) void served.then(() => supervisor.stop())
  }

  async #startProgram(
    { plan, environment }: Version,
    spawned: () => void = () => {},
    signal?: AbortSignal,
  ): Promise<void> {
    const supervisor = this.#supervised()
    this.markStarting()
    const drained = (port: number) => this.#exposure.drained(port)
    signal?.throwIfAborted()
    const started = supervisor.replace(plan, environment, drained)
    const end = () => void supervisor.stop()
    signal?.addEventListener('abort', end)
    try {
      spawned()
      await started
    } finally {
      signal?.removeEventListener('abort', end)
    }
  }

  /** What keeps it running on the sandbox that its server has now. */
  #supervised(): AppSupervisor {
    const { servers, clock, appPorts } = this.#parts
    const sandbox = servers.sandbox(this.serverId)
    if (sandbox === undefined) throw new ComputeError('The server does not run.')
    if (this.#supervisor?.of === sandbox) return this.#supervisor.supervisor
    const supervisor: AppSupervisor = new AppSupervisor({
      sandbox,
      cwd: this.#options.folder,
      clock,
      ports: appPorts,
      log: this.log,
      onState: (state) => {
        if (this.#supervisor?.supervisor === supervisor) this.#follow(state)
      },
    })
    this.#supervisor = { of: sandbox, supervisor }
    return supervisor
  }

  #follow(state: AppState): void {
    if (this.#servesFiles && state.kind !== 'healthy') return
    this.#servesFiles = false
    if (state.kind === 'healthy') this.#exposure.point({ kind: 'app', port: state.port, host: state.host })
    else if (state.kind === 'given_up')
      this.#exposure.point({ kind: 'down', reason: `Its app has ended. ${state.reason}` })
    else if (state.kind !== 'stopped') this.#exposure.point({ kind: 'starting' })
    if (state.kind === 'healthy') this.#setUp(true)
    else if (state.kind === 'given_up' || state.kind === 'stopped') this.#setUp(false)
  }

  #setUp(isUp: boolean): void {
    if (this.#isUp === isUp) return
    this.#isUp = isUp
    this.#options.onRunning(isUp)
  }

  #workspace(): Workspace {
    const workspace = this.#parts.servers.findWorkspace(this.serverId)
    if (workspace === undefined) throw new ComputeError('The server is gone.')
    return workspace
  }

  async #watchSources(): Promise<void> {
    await this.#unwatch()
    const plan = this.#version?.plan
    if (!plan?.watch || this.#pauses > 0) return
    const { folder } = this.#options
    const watch = new SourceWatch({
      workspace: this.#workspace(),
      folder,
      plan,
      onChange: (paths) => this.#sourcesChanged(paths),
    })
    this.#watch = watch
    await watch.start().catch((error) => {
      this.log.append('berth', `Its files are not watched: ${error instanceof Error ? error.message : error}`)
    })
  }

  async #unwatch(): Promise<void> {
    const watch = this.#watch
    this.#watch = null
    await watch?.close()
  }

  /** Builds and starts it again, or has browsers reload its pages. What ran goes on where that fails. */
  async #sourcesChanged(paths: ReadonlySet<string>): Promise<void> {
    const version = this.#version
    const sandbox = this.#parts.servers.sandbox(this.serverId)
    if (version === null || sandbox === undefined) return
    const { plan, environment } = version
    const [first, ...others] = paths
    this.log.append('berth', `Changed: ${first}${others.length > 0 ? ` and ${others.length} more` : ''}.`)
    try {
      const place = {
        sandbox,
        serverId: this.serverId,
        workspace: this.#workspace(),
        folder: this.#options.folder,
      }
      await this.#parts.preparation.build({ ...place, log: this.log }, plan, environment)
      // Meanwhile it may have been stopped, or got other variables.
      const now = this.#version
      if (now === null) return
      if (now.plan.start.kind === 'files') this.#reload.changed()
      else await this.#startProgram(now)
    } catch (error) {
      this.log.append('berth', messageOf(error))
    }
  }
}
