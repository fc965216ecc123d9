import { type CommandOwner, ComputeError, type Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { BerthError, badRequest } from '../../errors.ts'
import {
  AppError,
  AppFailure,
  type AppPlan,
  findAppDirectory,
  type LinkedTree,
  NoAppFound,
  storedPlan,
  summaryOf,
} from '../../hosting/app.ts'
import type { AppEnvironment, AppWorkspace, HostedApp, Preparation } from '../../hosting/hosting.ts'
import { parseAppDirectory } from '../projects/app-directory.ts'
import { PROJECTS_DIRECTORY } from '../projects/table.ts'
import type { PushedVersion } from './pushes.ts'
import type { DeploymentRow } from './table.ts'

/** Number of log lines in an error. */
const ERROR_LOG_LINES = 20

/** Serves the files of a directory without an app, as a listing if there is no page. */
const listing = (directory: string): AppPlan =>
  storedPlan({
    kind: 'static files, index of the directory',
    directory,
    start: { kind: 'files', folder: directory, fallback: false },
  })

/**
 * Returns the directory of a workspace that is to be published.
 *
 * @param given as a caller names it; undefined for the workspace itself
 * @throws BerthError 400 if there is none, or it is that of projects
 */
export async function publishedDirectory(given: string | undefined, tree: LinkedTree): Promise<string> {
  const directory = parseAppDirectory('directory', given ?? '.')
  const { problem } = await findAppDirectory(tree, directory)
  if (problem !== null) throw badRequest(problem)
  if (directory.split('/')[0] !== PROJECTS_DIRECTORY) return directory
  throw badRequest(
    `The directory ${PROJECTS_DIRECTORY} has projects, which are not published with a workspace.`,
  )
}

/** An app that is prepared already. */
export interface PreparedApp {
  /** How the app is started. It is installed and built. */
  plan: AppPlan
  /** Aborts the publication before it begins. */
  signal: AbortSignal
}

/** What the processes of a published app belong to. A server publishes one. */
export const OWNER: CommandOwner = { kind: 'deployment', id: null }

/** The options of a publication. */
interface PublicationOptions {
  readonly app: HostedApp
  readonly preparation: Preparation
  readonly sandbox: Sandbox
  readonly workspace: Workspace
  /** The app's own directory, relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  /** Ends what prepares the app. */
  readonly signal: AbortSignal
  /** Returns the app's variables, with those that berth makes for what the plan asks for. */
  readonly environment: (plan: AppPlan) => AppEnvironment
  /** The files that the workspace is given; missing if it is published as it is. */
  readonly version?: PushedVersion | undefined
}

/** One publication of a workspace: from its files to an app that responds, or back to the version before. */
export class Publication {
  readonly #options: PublicationOptions
  readonly #location: AppWorkspace

  constructor(options: PublicationOptions) {
    this.#options = options
    const { app, sandbox, workspace, directory: within, signal } = options
    const { serverId, log } = app
    this.#location = {
      ...{ owner: OWNER, serverId, sandbox, workspace, directory: '', within, log, signal },
    }
  }

  /**
   * Changes the files, and makes what the workspace has then respond.
   *
   * @param before the deployment that there is; undefined for none
   * @param prepared how the app is started, if it is installed and built already
   * @returns how it is started
   * @throws AppError; the reason why the version was withdrawn
   */
  async bringUp(before: DeploymentRow | undefined, prepared: AppPlan | undefined): Promise<AppPlan> {
    const { app, environment, version } = this.#options
    await version?.apply(before !== undefined && app.crash === null ? before : null)
    const plan = prepared ?? (await this.#prepare())
    await app.expose()
    await app.start(plan, environment(plan), {
      ...(version && { withdrawn: version.withdrawn }),
      beforeFallback: async () => void (await version?.change?.putBack()),
    })
    return plan
  }

  /** Detects how the workspace is published, and installs and builds its app. */
  async #prepare(): Promise<AppPlan> {
    const { preparation, version, signal: stopped } = this.#options
    const signal = AbortSignal.any(version === undefined ? [stopped] : [stopped, version.withdrawn])
    const location = { ...this.#location, signal }
    const plan = await preparation.plan(location).catch((error) => {
      if (!(error instanceof NoAppFound)) throw error
      const plan = listing(location.within ?? '')
      location.log.append('berth', `Found: ${plan.kind}. ${error.message}`)
      return plan
    })
    signal.throwIfAborted()
    if (plan.install !== null || plan.build !== null) version?.change?.markBuiltOver()
    await this.make(plan, location)
    return plan
  }

  /** Installs and builds an app. @throws AppError */
  async make(plan: AppPlan, location: AppWorkspace = this.#location): Promise<void> {
    const { preparation, environment } = this.#options
    const variables = environment(plan)
    await preparation.make(location, plan, () => variables)
  }

  /**
   * Puts the files of the version before back after a failure, installs and builds it as far as the failed version has done
   * that, and starts it if it does not respond.
   *
   * @returns what has become of it, for a person
   */
  async restore({ plan }: DeploymentRow, { change }: PushedVersion): Promise<string> {
    const { app, environment } = this.#options
    try {
      if (!(await change?.putBack())) {
        return app.isUp
          ? 'The version before goes on, but the workspace has the new files: those before are more than 128 MiB. Fix them before it is restarted.'
          : 'The workspace has the new files. Fix them and deploy again.'
      }
      app.log.append('berth', 'The files of the version before are back in place.')
      if (change?.isBuiltOver) await this.make(plan)
      if (!app.isUp) await app.start(plan, environment(plan))
      return 'The version before goes on, with its files.'
    } catch (error) {
      return `The version before could not be put back: ${summaryOf(error)}`
    }
  }
}

/** Returns the error of a failed publication as callers see it: with the end of the app's log, if it is about the app. */
export async function failureOf(error: unknown, app: HostedApp): Promise<unknown> {
  if (!(error instanceof AppError || error instanceof ComputeError)) return error
  const end = error instanceof AppFailure ? '' : await app.lastLines(ERROR_LOG_LINES)
  return new BerthError('compute_backend_error', `${error.message}${end === '' ? '' : `\n\n${end}`}`)
}
