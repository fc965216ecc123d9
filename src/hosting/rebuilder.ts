import type { Workspace } from '../compute/workspace.ts'
import type { Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import type { AppVersion } from './app-responder.ts'
import { AppFailure } from './app-runtime/plan.ts'
import type { FailedChange } from './app-runtime/supervision.ts'
import type { AppWorkspace, Preparation } from './preparation.ts'
import { MAX_PATHS, PausableWatch } from './source-watch.ts'

/** The options of a `Rebuilder`. */
interface RebuilderOptions {
  /** The app's place and log. The sandbox is undefined while the server does not run. */
  app: Pick<AppWorkspace, 'owner' | 'serverId' | 'directory' | 'log'> & {
    sandbox: () => AppWorkspace['sandbox'] | undefined
    /** @throws ComputeError if the server is gone */
    workspace: () => Workspace
  }
  preparation: Preparation
  clock: Clock
  /** Returns the version of the app that is wanted; null if there is none. */
  version: () => AppVersion | null
  /** Makes a version respond with its changed files. */
  restart: (version: AppVersion) => Promise<void>
  /** Called when a change has come up. */
  onUp: () => void
  /** Called when a change has not come up. */
  onFailed: () => void
}

/** The line of the log if the kernel refuses to watch all of an app's files. */
const LIMIT_REACHED =
  'Not all of its files are watched, because the limit of the machine is reached: some changes will not build the app again. Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, then restart the app.'

/** Watches an app's sources. Builds it again when they change, and makes it respond with the change. */
export class Rebuilder {
  readonly #options: RebuilderOptions
  readonly #watch = new PausableWatch()
  #failedChange: FailedChange | null = null

  constructor(options: RebuilderOptions) {
    this.#options = options
  }

  /** The last change that did not come up; null if the app came up later. */
  get failedChange(): FailedChange | null {
    return this.#failedChange
  }

  /** Notes that the app came up. */
  forgetFailure(): void {
    this.#failedChange = null
  }

  /** Watches the sources of the version that is wanted from now on, if its plan says so and nobody has paused. */
  async watch(): Promise<void> {
    const { app, version } = this.#options
    const plan = version()?.plan
    if (!plan?.watch || this.#watch.isPaused) return this.#watch.stop()
    const { directory } = app
    const onChange = (paths: ReadonlySet<string>) => this.#rebuild(paths)
    const onLimit = () => app.log.append('berth', LIMIT_REACHED)
    const options = { workspace: app.workspace(), directory, plan, onChange, onLimit }
    await this.#watch.start(options).catch((error) => {
      app.log.append('berth', `Its files are not watched: ${messageOf(error)}`)
    })
  }

  /** Stops to watch. A build under way goes on. */
  stop(): Promise<void> {
    return this.#watch.stop()
  }

  /** Stops to watch until the returned function is called, which may be called once. */
  async pause(): Promise<() => Promise<void>> {
    const resume = await this.#watch.pause()
    return async () => {
      resume()
      if (this.#options.app.sandbox() !== undefined) await this.watch()
    }
  }

  /** If this fails, the version before keeps running. */
  async #rebuild(paths: ReadonlySet<string>): Promise<void> {
    const { app, preparation, clock, version, restart, onUp, onFailed } = this.#options
    const { log } = app
    const changed = version()
    const sandbox = app.sandbox()
    if (changed === null || sandbox === undefined) return
    const [first, ...others] = paths
    log.append('berth', `Changed: ${first}${othersInWords(others.length)}.`)
    let isBuilt = false
    try {
      const location = { ...app, sandbox, workspace: app.workspace() }
      await preparation.build(location, changed.plan, changed.environment)
      isBuilt = true
      // The app may have been stopped meanwhile, or got other variables.
      const now = version()
      if (now === null) return
      await restart(now)
      this.#failedChange = null
      onUp()
    } catch (error) {
      const isOfApp = error instanceof AppFailure
      // The end of the output is in the log already.
      const reason = isOfApp ? error.summary : messageOf(error)
      // What replaces the version that runs has told why the new one did not start.
      if (!isOfApp || !isBuilt) log.append('berth', reason)
      this.#failedChange = { reason, at: clock.now() }
      onFailed()
    }
  }
}

const othersInWords = (count: number): string => {
  if (count === 0) return ''
  return count < MAX_PATHS - 1 ? ` and ${count} more` : ` and at least ${count} more`
}
