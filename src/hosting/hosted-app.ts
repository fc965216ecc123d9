import { type CommandOwner, ComputeError, type Sandbox } from '../compute/sandbox.ts'
import type { Workspace } from '../compute/workspace.ts'
import type { Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import type { Logger } from '../runtime/logger.ts'
import { Masks } from '../runtime/masks.ts'
import { LatestOnly } from '../runtime/mutex.ts'
import { once } from '../runtime/once.ts'
import type { RecordedLine, Recorder } from '../runtime/recorder.ts'
import { type AppChange, AppResponder, type AppStartOptions, type AppVersion } from './app-responder.ts'
import { AppLog } from './app-runtime/log/log.ts'
import { AppFailure, type AppPlan, summaryOf } from './app-runtime/plan.ts'
import type { AppPorts } from './app-runtime/ports.ts'
import { type AppCrash, describeCrash, type FailedChange } from './app-runtime/supervision.ts'
import { findWarnings } from './page/check.ts'
import type { AppEnvironment, Preparation } from './preparation.ts'
import type { ServeFiles, SiteHost, Upstream } from './sites/upstream.ts'
import { MAX_PATHS, PausableWatch } from './source-watch.ts'
import { LiveReload } from './static/reload.ts'
import type { Worker } from './workers.ts'

/** The servers that apps run on, as far as hosting uses them. */
export interface AppServers {
  /** Returns the sandbox of a running server. */
  sandbox(serverId: string): Sandbox | undefined
  /** Returns the files of a server, running or not; undefined if there is no such server. */
  findWorkspace(serverId: string): Workspace | undefined
  /** Reports whether a server sleeps. */
  isSleeping(serverId: string): boolean
  /** Keeps a server from sleeping until the returned function is called. Does not wake it. */
  hold(serverId: string): () => void
}

/** The options of one app. */
export interface HostedAppOptions {
  /** What its processes belong to. */
  owner: CommandOwner
  /** Id of the project, or of the server that publishes the app. */
  id: string
  serverId: string
  /** Directory of the app, relative to the server's workspace; empty for the workspace itself. */
  directory: string
  /** Port of the app's site. */
  port: number
  /** First label of the app's host name; null for none. */
  slug: string | null
  /** Whether the app has run before and has to run again with its server. */
  hasRun: boolean
  onChange: (change: AppChange) => void
  /** Reports whether a path, as names below the workspace, is hidden if files are served. */
  isHidden?: (names: readonly string[]) => boolean
}

/** Dependencies that all hosted apps share. */
export interface HostedAppDependencies {
  clock: Clock
  logger: Logger
  servers: AppServers
  sites: SiteHost
  preparation: Preparation
  /** Returns the URL of the site on a port. */
  urlOf: (port: number) => string
  /** Ports that apps listen on. */
  appPorts: AppPorts
  /** Returns the slug of the project of this id; null if there is none. */
  slugOf: (id: string) => string | null
  /** Directory of the logs of all apps. */
  logsDirectory: string
  /** Returns the credential that every command of a server has, which logs must not show. */
  credentialOf: (serverId: string) => string
  /** Takes the lines of all logs; null if nothing is recorded. */
  recorder: Recorder | null
  /**
   * Reports whether a browser is signed in to the account of a server, and may read the logs of its apps.
   *
   * @param cookies the Cookie header of its request
   */
  mayReadLogs: (serverId: string, cookies: string) => Promise<boolean>
}

/** Largest number of phases of a bring-up, and of the lines that name them. @bound reader */
const MAX_PHASES = 8

/** The line of the log if the kernel refuses to watch all of an app's files. */
const LIMIT_REACHED =
  'Not all of its files are watched, because the limit of the machine is reached: some changes will not build the app again. Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, then restart the app.'

const NOT_STARTED: Upstream = { kind: 'down', reason: 'Nothing has been started here yet.' }

/** Returns why an app does not run whose server sleeps, with the remedy. */
const asleepReason = (serverId: string): string =>
  `Its server ${serverId} sleeps. "berth servers start ${serverId}" starts it, and the app with it.`

/**
 * An app of a server with its own site: the version that is wanted, its log, and the watch on its files, whose changes build
 * it again. Its state, and what responds, follow from `start`, `stop` and the server, see `AppResponder`; the version
 * stays when the server stops, to run again with it.
 */
export class HostedApp {
  readonly id: string
  readonly serverId: string
  /** Port of its site. */
  readonly port: number
  /** First label of its host name; null for none. */
  readonly slug: string | null
  readonly log: AppLog
  readonly #options: HostedAppOptions
  readonly #dependencies: HostedAppDependencies
  readonly #reload = new LiveReload()
  readonly #responder: AppResponder
  readonly #watch = new PausableWatch()
  readonly #restarts = new LatestOnly((environment: AppEnvironment) => this.#restart(environment))
  /** The version that starts, runs or ran last; null if none ever did, or the app was stopped. */
  #version: AppVersion | null = null
  /** The last change of its files that did not come up; null if the app came up later. */
  #failedChange: FailedChange | null = null
  /** The command that starts or failed last, for a person; null if none is known. */
  #command: string | null = null

  /** Opens the app's log. Starts nothing. */
  static async open(options: HostedAppOptions, dependencies: HostedAppDependencies): Promise<HostedApp> {
    const { clock, logger, logsDirectory, credentialOf, recorder } = dependencies
    const masks = new Masks()
    masks.add([credentialOf(options.serverId)])
    const { id } = options
    const record = recorder && ((line: RecordedLine) => recorder.logLine(id, line))
    const log = await AppLog.open({
      dir: `${logsDirectory}/${id}`,
      clock,
      logger,
      masks,
      ...(record && { record }),
    })
    return new HostedApp(options, dependencies, log)
  }

  private constructor(options: HostedAppOptions, dependencies: HostedAppDependencies, log: AppLog) {
    this.id = options.id
    this.serverId = options.serverId
    this.port = options.port
    this.slug = options.slug
    this.log = log
    this.#options = options
    this.#dependencies = dependencies
    const { owner, directory, port, slug, serverId, hasRun, onChange } = options
    const { clock, servers, sites, appPorts, slugOf, preparation } = dependencies
    const first: Upstream = !hasRun
      ? NOT_STARTED
      : servers.isSleeping(serverId)
        ? { kind: 'down', reason: asleepReason(serverId) }
        : { kind: 'starting' }
    this.#responder = new AppResponder({
      ...{ owner, serverId, cwd: directory, clock, ports: appPorts, log, slugOf, preparation, sites, first },
      site: { port, slug, onUse: () => servers.hold(serverId) },
      sandbox: () => this.#sandbox(),
      workspace: () => this.#workspace(),
      serve: (version, folder, fallback) => this.#serveFiles(version, folder, fallback),
      status: (reason) => async (request) =>
        (await import('./status-page.ts')).serveStatus(this, reason)(request),
      onChange: (change) => {
        if (change === 'recovered') this.#failedChange = null
        onChange(change)
      },
    })
  }

  /** Whether the app responds. */
  get isUp(): boolean {
    return this.#responder.isUp
  }

  /** Whether berth serves its files, so that changes of them take effect at once. */
  get servesFiles(): boolean {
    return this.#version?.plan.start.kind === 'files'
  }

  /** Whether another program has the port of the app's site, which is open. */
  get isPortTaken(): boolean {
    return this.#responder.isPortTaken
  }

  /** Why the app does not respond any more, after it did; null if it responds, never did, or was stopped. */
  get crash(): AppCrash | null {
    return this.#responder.crash
  }

  /** The programs that run beside it, or instead of it. */
  get workers(): readonly Worker[] {
    return this.#responder.workers.list()
  }

  /** The last change of its files that did not come up, while the version before responds; null if there is none. */
  get failedChange(): FailedChange | null {
    return this.isUp && this.crash === null ? this.#failedChange : null
  }

  /** How the app crashed, as sentences for a person; null if it did not. */
  get crashText(): string | null {
    const { crash } = this
    return crash && describeCrash(crash, this.#dependencies.clock.now())
  }

  /** The command that starts or failed last; null if none is known. */
  get command(): string | null {
    return this.#command
  }

  /** Whether its server sleeps. */
  get isAsleep(): boolean {
    return this.#dependencies.servers.isSleeping(this.serverId)
  }

  /**
   * Reports whether the sender of a request may read its log.
   *
   * @param cookies the request's Cookie header
   */
  mayReadLog(cookies: string): Promise<boolean> {
    return this.#dependencies.mayReadLogs(this.serverId, cookies)
  }

  /** Masks these values in the log from now on. */
  maskValues(environment: AppEnvironment): void {
    this.log.masks.update(Object.values(environment))
  }

  /** Returns the last lines of the log as text, without those that only name a phase. */
  async lastLines(count: number): Promise<string> {
    const lines = (await this.log.tail(count + MAX_PHASES)).filter(({ phase }) => phase === undefined)
    return lines
      .slice(-count)
      .map(({ text }) => text)
      .join('\n')
  }

  /**
   * Asks the app for its pages, and logs what is wrong with them.
   *
   * @returns what may surprise of how it is run, which is logged already, and that
   */
  async findWarnings(signal = new AbortController().signal): Promise<string[]> {
    const plan = this.#version?.plan
    if (plan === undefined) return []
    const strange = [...plan.warnings, ...this.#responder.workers.failures]
    if (plan.start.kind === 'workers') return strange
    const { port, slug, log } = this
    const { upstream } = this.#responder
    const app = { plan, upstream, url: this.#dependencies.urlOf(port), slug, log }
    return [...strange, ...(await findWarnings(app, signal))]
  }

  /** Opens the app's site. Does nothing after `remove`. */
  expose(): Promise<void> {
    return this.#responder.open()
  }

  /** Closes the app's site. */
  unexpose(): Promise<void> {
    return this.#responder.close()
  }

  /** Makes requests wait for the app, unless it responds already. */
  markStarting(): void {
    this.#responder.markStarting()
  }

  /**
   * Sets the reason that requests get while the app does not run, unless it responds already.
   *
   * @param command the one that failed; null if none is known
   */
  markDown(reason: string, command: string | null = null): void {
    this.#command = command ?? this.#command
    this.#responder.markDown(reason)
  }

  /**
   * Starts the app, or replaces the version that runs. Resolves when the new one responds.
   *
   * @throws AppError if the app does not respond; the earlier version keeps running. ComputeError if the server does
   * not run
   */
  async start(
    plan: AppPlan,
    environment: AppEnvironment,
    options: Partial<AppStartOptions> = {},
  ): Promise<void> {
    const version = { plan, environment }
    if (plan.start.kind === 'command') this.#command = plan.start.command
    const before = this.#version
    this.#version = version
    try {
      await this.#responder.start(version, before, options)
    } catch (error) {
      // An app that ran under an earlier berth is started again when its variables change.
      if (this.#version === version) this.#version = before ?? (this.#options.hasRun ? version : null)
      throw error
    }
    this.#failedChange = null
    await this.#watchFiles()
  }

  /**
   * Restarts the app with other variables, if it runs. Of several calls during a restart, only the last one takes
   * effect.
   *
   * @throws AppError if the app does not respond with them
   */
  restart(environment: AppEnvironment): Promise<void> {
    return this.#restarts.run(environment)
  }

  async #restart(environment: AppEnvironment): Promise<void> {
    const version = this.#version
    if (version === null || this.#dependencies.servers.sandbox(this.serverId) === undefined) return
    if (version.plan.start.kind !== 'files') return await this.start(version.plan, environment)
    version.environment = environment
    await this.#responder.runWorkers(version)
  }

  /** Stops the app. Requests get the reason. */
  async stop(reason: string): Promise<void> {
    this.#version = null
    await this.#watch.stop()
    await this.#responder.stop(reason)
  }

  /** Stops watching the app's files until the returned function is called, which may be called once. */
  async pauseWatch(): Promise<() => Promise<void>> {
    const resume = await this.#watch.pause()
    return async () => {
      resume()
      if (this.#dependencies.servers.sandbox(this.serverId) !== undefined) await this.#watchFiles()
    }
  }

  /** Watches the files of the version that is wanted from now on, if its plan says so and nobody has paused. */
  async #watchFiles(): Promise<void> {
    const plan = this.#version?.plan
    if (!plan?.watch || this.#watch.isPaused) return this.#watch.stop()
    const { log } = this
    const { directory } = this.#options
    const onChange = (paths: ReadonlySet<string>) => this.#rebuild(paths)
    const onLimit = () => log.append('berth', LIMIT_REACHED)
    const options = { workspace: this.#workspace(), directory, plan, onChange, onLimit }
    await this.#watch.start(options).catch((error) => {
      log.append('berth', `Its files are not watched: ${messageOf(error)}`)
    })
  }

  /** Builds the app again, and makes it respond with its changed files. If this fails, the version before goes on. */
  async #rebuild(paths: ReadonlySet<string>): Promise<void> {
    const { log, serverId } = this
    const { owner, directory, onChange } = this.#options
    const { preparation, servers, clock } = this.#dependencies
    const changed = this.#version
    const sandbox = servers.sandbox(serverId)
    if (changed === null || sandbox === undefined) return
    const [first, ...others] = paths
    log.append('berth', `Changed: ${first}${othersInWords(others.length)}.`)
    let isBuilt = false
    try {
      const location = { owner, serverId, directory, log, sandbox, workspace: this.#workspace() }
      await preparation.build(location, changed.plan, changed.environment)
      isBuilt = true
      // The app may have been stopped meanwhile, or got other variables.
      const wanted = this.#version
      if (wanted === null) return
      if (wanted.plan.start.kind === 'files') {
        this.#reload.changed()
        await this.#responder.runWorkers(wanted)
      } else await this.#responder.begin(wanted)
      this.#failedChange = null
      onChange('recovered')
    } catch (error) {
      const isOfApp = error instanceof AppFailure
      // The end of the output is in the log already.
      const reason = summaryOf(error)
      // What replaces the version that runs has logged why the new one did not start.
      if (!isOfApp || !isBuilt) log.append('berth', reason)
      this.#failedChange = { reason, at: clock.now() }
      onChange('changed')
    }
  }

  /** Notes that the server stops, and the app's processes with it. */
  serverStopping(): void {
    this.#responder.serverStopping(asleepReason(this.serverId))
    void this.#watch.stop()
  }

  /** Releases the app because berth stops. Its server ends the processes. */
  async close(): Promise<void> {
    this.#responder.release()
    await this.#watch.stop()
    await this.log.close()
  }

  /** Stops the app and removes its log. Its files stay. */
  async remove(): Promise<void> {
    await this.#end()
    await this.log.remove()
  }

  /** Stops the app. Its log and its files stay. */
  async drop(): Promise<void> {
    await this.#end()
    await this.log.close()
  }

  async #end(): Promise<void> {
    this.#responder.closePermanently()
    await this.stop('It was removed.')
    await this.unexpose()
  }

  #serveFiles({ plan }: AppVersion, folder: string, fallback: boolean): ServeFiles {
    const location = [this.#options.directory, folder].filter(Boolean).join('/')
    const reload = plan.watch ? this.#reload : null
    const above = location.split('/').filter(Boolean)
    const { isHidden } = this.#options
    const workspace = this.#workspace()
    const options = {
      ...{ fallback, listing: true, reload },
      ...(isHidden && { isHidden: (names: readonly string[]) => isHidden([...above, ...names]) }),
    }
    const site = once(async () =>
      (await import('./static/serve.ts')).serveFiles(workspace, location, options),
    )
    return async (request) => (await site())(request)
  }

  #sandbox(): Sandbox {
    const sandbox = this.#dependencies.servers.sandbox(this.serverId)
    if (sandbox === undefined) throw new ComputeError('The server does not run.')
    return sandbox
  }

  #workspace(): Workspace {
    const workspace = this.#dependencies.servers.findWorkspace(this.serverId)
    if (workspace === undefined) throw new ComputeError('The server is gone.')
    return workspace
  }
}

const othersInWords = (count: number): string => {
  if (count === 0) return ''
  return count < MAX_PATHS - 1 ? ` and ${count} more` : ` and at least ${count} more`
}
