import type { AppLog } from '../../apps/log/log.ts'
import type { AppPlan } from '../../apps/plan.ts'
import type { Sandbox } from '../../compute/driver.ts'
import type { Workspace } from '../../compute/workspace.ts'

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

/** What preparation needs. */
interface PreparationDependencies {
  /** Variables with which package managers on a server find the packages that are kept here. */
  packagesFor: (serverId: string) => Promise<Readonly<Record<string, string>>>
}

/** Finds out how an app is started, and runs what comes before: installation and build. */
export class Preparation {
  readonly #packagesFor: PreparationDependencies['packagesFor']

  constructor({ packagesFor }: PreparationDependencies) {
    this.#packagesFor = packagesFor
  }

  /** How the app in a folder is installed, built and started. @throws AppError, NoAppFound */
  async plan({ workspace, folder, sandbox, log }: Place): Promise<AppPlan> {
    const [{ planApp }, { SandboxTools }] = await Promise.all([
      import('../../apps/detect.ts'),
      import('../../apps/tools.ts'),
    ])
    const plan = await planApp({ workspace, folder, tools: new SandboxTools(sandbox) })
    log.append('berth', `Found: ${plan.kind}.`)
    return plan
  }

  /** Installs what the app needs. @throws AppError */
  async install(place: Place, plan: AppPlan, environment: Readonly<Record<string, string>>): Promise<void> {
    if (plan.install !== null) await this.#run(place, 'install', plan.install, environment)
  }

  /** Builds the app. @throws AppError */
  async build(place: Place, plan: AppPlan, environment: Readonly<Record<string, string>>): Promise<void> {
    if (plan.build !== null) await this.#run(place, 'build', plan.build, environment)
  }

  async #run(
    { serverId, sandbox, folder, log, signal }: Place,
    source: 'install' | 'build',
    command: string,
    environment: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { runStep } = await import('../../apps/step.ts')
    const env = { ...(await this.#packagesFor(serverId)), ...environment }
    await runStep({ sandbox, cwd: folder, command, env, log, source, ...(signal ? { signal } : {}) })
  }
}
