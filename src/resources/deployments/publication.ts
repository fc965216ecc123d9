import { ComputeError } from '../../compute/compute-error.ts'
import type { Sandbox } from '../../compute/sandbox.ts'
import type { CommandOwner } from '../../compute/server-process.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { BerthError, badRequest } from '../../errors.ts'
import { findAppDirectory, type LinkedTree } from '../../hosting/app-directory.ts'
import { AppError, AppFailure, type AppPlan, NoAppFound, storedPlan } from '../../hosting/app-runtime/plan.ts'
import type { HostedApp } from '../../hosting/hosted-app.ts'
import type { AppWorkspace, Preparation } from '../../hosting/preparation.ts'
import { messageOf } from '../../runtime/error-info.ts'
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

/** Returns where what a server publishes is installed and built. */
export const locationOf = (
  { serverId, log }: HostedApp,
  sandbox: Sandbox,
  workspace: Workspace,
  within: string,
  signal: AbortSignal,
): AppWorkspace => ({ owner: OWNER, serverId, sandbox, workspace, directory: '', within, log, signal })

/** The app of a publication, where it is prepared, and its variables. */
interface PublicationPlace {
  readonly app: HostedApp
  readonly location: AppWorkspace
  /** Returns its variables, with those that berth makes for what the plan asks for. */
  readonly environment: (plan: AppPlan) => Readonly<Record<string, string>>
}

/**
 * Detects how to publish a workspace, and installs and builds its app.
 *
 * @param version the files that it has been given; undefined if it is published as it is
 * @throws AppError; the reason why the version was withdrawn
 */
export async function preparePublication(
  preparation: Preparation,
  { app, location, environment }: PublicationPlace,
  version: PushedVersion | undefined,
): Promise<AppPlan> {
  const signals = [location.signal, version?.withdrawn].filter((signal) => signal !== undefined)
  const signal = AbortSignal.any(signals)
  const endable = { ...location, signal }
  const plan = await preparation.plan(endable).catch((error) => {
    if (!(error instanceof NoAppFound)) throw error
    const plan = listing(location.within ?? '')
    location.log.append('berth', `Found: ${plan.kind}. ${error.message}`)
    return plan
  })
  signal.throwIfAborted()
  if (version !== undefined && (plan.install !== null || plan.build !== null)) version.change?.markBuiltOver()
  await build(preparation, { app, location: endable, environment }, plan)
  return plan
}

/** Installs and builds an app. @throws AppError */
export async function build(
  preparation: Preparation,
  { location, environment }: PublicationPlace,
  plan: AppPlan,
): Promise<void> {
  const variables = environment(plan)
  await preparation.install(location, plan, variables)
  await preparation.build(location, plan, variables)
}

/**
 * Puts the files of the version before back after a failure, installs and builds it as far as the failed version has done
 * that, and starts it if it does not respond.
 *
 * @returns what has become of it, for a person
 */
export async function restorePublication(
  preparation: Preparation,
  { app, location, environment }: PublicationPlace,
  { plan }: DeploymentRow,
  { change }: PushedVersion,
): Promise<string> {
  try {
    if (!(await change?.putBack())) {
      return app.isUp
        ? 'The version before goes on, but the workspace has the new files: those before are more than 128 MiB. Fix them before it is restarted.'
        : 'The workspace has the new files. Fix them and deploy again.'
    }
    app.log.append('berth', 'The files of the version before are back in place.')
    if (change?.isBuiltOver) await build(preparation, { app, location, environment }, plan)
    if (!app.isUp) await app.start(plan, environment(plan))
    return 'The version before goes on, with its files.'
  } catch (error) {
    const reason = error instanceof AppFailure ? error.summary : messageOf(error)
    return `The version before could not be put back: ${reason}`
  }
}

/** Returns the error of a failed publication as callers see it: with the end of the app's log, if it is about the app. */
export async function failureOf(error: unknown, app: HostedApp): Promise<unknown> {
  if (!(error instanceof AppError || error instanceof ComputeError)) return error
  const end = error instanceof AppFailure ? '' : await app.lastLines(ERROR_LOG_LINES)
  return new BerthError('compute_backend_error', `${error.message}${end === '' ? '' : `\n\n${end}`}`)
}
