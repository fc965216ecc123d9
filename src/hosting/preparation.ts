import { dirname } from 'node:path/posix'
import type { Sandbox } from '../compute/driver.ts'
import { type Workspace, WorkspaceError } from '../compute/workspace.ts'
import type { AppLog } from './app-runtime/log/log.ts'
import type { AppPlan } from './app-runtime/plan.ts'
import type { Packages } from './npm-mirror/packages.ts'

/** Where an app lies that is prepared. */
export interface Place {
  serverId: string
  sandbox: Sandbox
  workspace: Workspace
  /** Relative to the workspace; empty for all of it. */
  folder: string
  log: AppLog
  /** Ends what is under way. */
  signal?: AbortSignal
}

/** Where package managers keep what they download while they install, relative to the workspace. */
const CACHE = '.cache/berth'

/** Finds out how an app is started, and runs what comes before: installation and build. */
export class Preparation {
  readonly #packages: Packages

  /** @param packages gives the way to the packages that servers share */
  constructor(packages: Packages) {
    this.#packages = packages
  }

  /** How the app in a folder is installed, built and started. @throws AppError, NoAppFound */
  async plan({ workspace, folder, sandbox, log }: Place): Promise<AppPlan> {
    const [{ planApp }, { SandboxTools }] = await Promise.all([
      import('./app-runtime/detect.ts'),
      import('./app-runtime/tools.ts'),
    ])
    const plan = await planApp({ workspace, dir: folder, tools: new SandboxTools(sandbox) })
    log.append('berth', `Found: ${plan.kind}.`)
    return plan
  }

  /** Installs what the app needs. @throws AppError */
  async install(place: Place, plan: AppPlan, environment: Environment): Promise<void> {
    if (plan.install === null) return
    const { sandbox, workspace, serverId, log } = place
    // Berth keeps packages for all servers: a further copy would only fill this one's workspace.
    const cache = `${CACHE}/${place.folder.replaceAll('/', '-') || 'workspace'}`
    try {
      await this.#run(place, 'install', plan.install, {
        ...cachesIn(`${sandbox.home}/${cache}`, plan.install),
        ...environment,
      })
    } catch (error) {
      for (const problem of this.#packages.takeProblems(serverId)) log.append('install', problem)
      throw error
    } finally {
      await removeFolders(workspace, cache, CACHE, dirname(CACHE))
    }
  }

  /** Builds the app. @throws AppError */
  async build(place: Place, plan: AppPlan, environment: Environment): Promise<void> {
    if (plan.build !== null) await this.#run(place, 'build', plan.build, environment)
  }

  async #run(
    place: Place,
    source: 'install' | 'build',
    command: string,
    environment: Environment,
  ): Promise<void> {
    const { serverId, sandbox, workspace, folder, log, signal } = place
    const { runStep } = await import('./app-runtime/step.ts')
    const packages = await this.#packages.environment(serverId, { tools: sandbox.tools, workspace, folder })
    const env = { ...packages, ...environment }
    await runStep({ sandbox, cwd: folder, command, env, log, source, ...(signal ? { signal } : {}) })
  }
}

type Environment = Readonly<Record<string, string>>

/** Settings of package managers that have them keep what they download in one folder. */
const cachesIn = (folder: string, command: string): Environment => ({
  npm_config_cache: `${folder}/npm`,
  // npm complains of settings that it does not know.
  ...(/\bpnpm\b/.test(command)
    ? { npm_config_store_dir: `${folder}/pnpm`, pnpm_config_store_dir: `${folder}/pnpm` }
    : {}),
  YARN_CACHE_FOLDER: `${folder}/yarn`,
  BUN_INSTALL_CACHE_DIR: `${folder}/bun`,
  PIP_CACHE_DIR: `${folder}/pip`,
})

/** Removes a folder, and then those around it, innermost first, as long as nothing else is left in them. */
async function removeFolders(workspace: Workspace, folder: string, ...around: string[]): Promise<void> {
  try {
    await workspace.remove(folder)
    for (const one of around) {
      if ((await workspace.entries(one)).length > 0) return
      await workspace.remove(one)
    }
  } catch (error) {
    // Not made, or gone with the server.
    if (!(error instanceof WorkspaceError)) throw error
  }
}
