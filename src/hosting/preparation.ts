import { dirname } from 'node:path/posix'
import { NPM_VARIABLES } from '../compute/npm-settings.ts'
import type { Sandbox } from '../compute/sandbox.ts'
import type { CommandOwner } from '../compute/server-process.ts'
import { type Workspace, WorkspaceError } from '../compute/workspace.ts'
import type { AppLog } from './app-runtime/log/log.ts'
import { type AppPlan, describePlan, inApp } from './app-runtime/plan.ts'
import type { Packages } from './npm-mirror/packages.ts'

/** The location and the log of an app to prepare. */
export interface AppWorkspace {
  /** What its commands belong to. */
  owner: CommandOwner
  serverId: string
  sandbox: Sandbox
  workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  directory: string
  log: AppLog
  /** Aborts the step under way. */
  signal?: AbortSignal
}

/** Directory for the downloads of package managers during an install, relative to the workspace. */
const CACHE = '.cache/berth'

/** Detects how an app is started, installs its packages and builds it. */
export class Preparation {
  readonly #packages: Packages

  /**
   * @param packages gives access to the packages that servers share
   */
  constructor(packages: Packages) {
    this.#packages = packages
  }

  /**
   * Detects how the app in a directory is installed, built and started, and says in its log what it is.
   *
   * @throws AppError, NoAppFound
   */
  async plan(location: AppWorkspace): Promise<AppPlan> {
    const plan = await this.detect(location)
    for (const line of describePlan(plan)) location.log.append('berth', line)
    return plan
  }

  /** Does the same without a line in the log. @throws AppError, NoAppFound */
  async detect({ workspace, directory, sandbox }: AppWorkspace): Promise<AppPlan> {
    const [{ planApp }, { SandboxMachine }] = await Promise.all([
      import('./detection/detect.ts'),
      import('./detection/sandbox-machine.ts'),
    ])
    return planApp({ workspace, directory, machine: new SandboxMachine(sandbox) })
  }

  /**
   * Installs the app's packages.
   *
   * @throws AppError
   */
  async install(location: AppWorkspace, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    if (plan.install === null) return
    const { sandbox, workspace, serverId, log } = location
    // The mirror caches packages for all servers: another copy would only fill this workspace.
    const cache = `${CACHE}/${location.directory.replaceAll('/', '-') || 'workspace'}`
    try {
      await this.#run(location, 'install', plan, {
        ...cacheVariables(`${sandbox.home}/${cache}`, plan.install),
        ...environment,
      })
    } catch (error) {
      for (const problem of this.#packages.takeProblems(serverId)) log.append('install', problem)
      throw error
    } finally {
      await removeDirectories(workspace, cache, CACHE, dirname(CACHE))
    }
  }

  /** Builds the app. @throws AppError */
  async build(location: AppWorkspace, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    if (plan.build !== null) await this.#run(location, 'build', plan, environment)
  }

  async #run(
    location: AppWorkspace,
    source: 'install' | 'build',
    plan: AppPlan,
    environment: AppEnvironment,
  ): Promise<void> {
    const { owner, serverId, sandbox, workspace, directory, log, signal } = location
    const { runStep } = await import('./app-runtime/step.ts')
    const packages = await this.#packages.environment(serverId, {
      tools: sandbox.tools,
      workspace,
      directory,
    })
    const { [NPM_VARIABLES.url]: mirror } = packages
    if (mirror !== undefined) sandbox.forward(Number(new URL(mirror).port))
    const shown = plan[source] ?? ''
    const env = { ...packages, ...plan.variables, ...environment }
    const step = {
      owner,
      sandbox,
      workspace,
      cwd: directory,
      command: inApp(plan, shown),
      shown,
      env,
      log,
      source,
    }
    await runStep({ ...step, ...(signal ? { signal } : {}) })
  }
}

type AppEnvironment = Readonly<Record<string, string>>

/** Returns settings that make package managers keep their downloads in one directory. */
const cacheVariables = (directory: string, command: string): AppEnvironment => ({
  npm_config_cache: `${directory}/npm`,
  // npm warns of settings that it does not know.
  ...(/\bpnpm\b/.test(command)
    ? { npm_config_store_dir: `${directory}/pnpm`, pnpm_config_store_dir: `${directory}/pnpm` }
    : {}),
  YARN_CACHE_FOLDER: `${directory}/yarn`,
  BUN_INSTALL_CACHE_DIR: `${directory}/bun`,
  PIP_CACHE_DIR: `${directory}/pip`,
})

/** Removes a directory, and then its parents, innermost first, if they are empty. */
async function removeDirectories(
  workspace: Workspace,
  directory: string,
  ...around: string[]
): Promise<void> {
  try {
    await workspace.remove(directory)
    for (const one of around) {
      if ((await workspace.entries(one)).length > 0) return
      await workspace.remove(one)
    }
  } catch (error) {
    // Never created, or deleted with its server.
    if (!(error instanceof WorkspaceError)) throw error
  }
}
