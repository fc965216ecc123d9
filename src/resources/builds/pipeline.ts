import type { Agent } from '../../agents/agents.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { explanationOf } from '../../errors.ts'
import { type AppPlan, missingVariables } from '../../hosting/app.ts'
import type { Preparation } from '../../hosting/hosting.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { DeploymentsService } from '../deployments/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'
import { type BuildContext, BuildFailure } from './context.ts'
import { applyScaffold } from './files/scaffold.ts'
import { type Changes, diffSnapshots, type Snapshot, takeSnapshot, writtenPaths } from './files/snapshot.ts'
import { implement } from './implement/implement.ts'
import {
  changeLines,
  outcomeText,
  type PlanContent,
  pathsText,
  planText,
  type StartingPoint,
} from './plan/document.ts'
import { PlanFile } from './plan/file.ts'
import { chooseStartingPoint } from './plan/starting-point.ts'
import type { BuildRecords } from './records.ts'
import type { StepKey } from './steps.ts'

/** Dependencies of the phases. */
export interface PipelineDependencies {
  records: BuildRecords
  servers: ServersService
  catalog: TemplateCatalog
  preparation: () => Promise<Preparation>
  deployments: () => Promise<DeploymentsService>
  /** Loads the agent that implements goals. */
  agent: () => Promise<Agent>
  logger: Logger
}

/** How a build ended. */
export interface BuildResult {
  /** The URL of the app; null if the build failed. */
  readonly url: string | null
  readonly artifacts: readonly string[]
}

/**
 * Runs the phases of a build, from its plan to an app that responds. Each phase is recorded before its work begins.
 */
export class BuildPipeline {
  readonly #dependencies: PipelineDependencies
  readonly #context: BuildContext
  #step: StepKey = 'plan'
  #plan: PlanFile | null = null
  #planContent: PlanContent | null = null
  /** The workspace when the build started. */
  #initialSnapshot: Snapshot | null = null

  constructor(dependencies: PipelineDependencies, work: BuildContext) {
    this.#dependencies = dependencies
    this.#context = work
  }

  /**
   * Runs the phases. A failure is written to the log and the plan.
   *
   * @throws the signal's reason
   */
  async run(): Promise<BuildResult> {
    const { signal } = this.#context
    const deployments = await this.#dependencies.deployments()
    // Keeps the current deployment from restarting again and again while its files change.
    const resume = await deployments.pauseWatch(this.#context.row.serverId)
    let url: string | null = null
    try {
      url = await this.#runSteps(deployments)
    } catch (error) {
      signal.throwIfAborted()
      await this.#reportFailure(error)
    } finally {
      await resume()
    }
    return { url, artifacts: await this.listArtifacts() }
  }

  /** Returns the paths of existing files that the build created or changed. */
  async listArtifacts(): Promise<readonly string[]> {
    const { row } = this.#context
    const recorded = this.#dependencies.records.find(row.id)
    if (recorded === undefined || this.#step !== 'deploy') return this.#listChanged()
    // Files that the app writes after its start are not the build's.
    return filterExisting(this.#context, recorded.artifacts)
  }

  async #runSteps(deployments: DeploymentsService): Promise<string> {
    const { row, log, signal } = this.#context
    const startingPoint = await this.#writePlan()
    await this.#scaffold(startingPoint)
    await this.#implement(startingPoint)
    const { variable, release } = await deployments.reserveAddress(row.serverId)
    try {
      const plan = await this.#prepare(variable)
      this.#startStep('deploy', 'Publishes the app.', { artifacts: await this.#listChanged() })
      const { url } = await deployments.publish(accountCaller(row.accountId), row.serverId, {
        prepared: { plan, signal },
      })
      log.append('deploy', `It answers at ${url}`)
      return url
    } finally {
      release()
    }
  }

  async #writePlan(): Promise<StartingPoint> {
    const { row, workspace, log, isExcluded } = this.#context
    const { records, catalog } = this.#dependencies
    this.#startStep('plan', 'Decides what to begin with.')
    this.#initialSnapshot = await takeSnapshot(workspace, isExcluded)
    const [preparation, agent] = await Promise.all([
      this.#dependencies.preparation(),
      this.#dependencies.agent(),
    ])
    const earlier = records.listScaffolded(row.serverId).filter(({ id }) => id !== row.id)
    const startingPoint = await chooseStartingPoint(this.#context, {
      preparation,
      catalog,
      agent,
      earlier,
      snapshot: this.#initialSnapshot,
    })
    this.#plan = await PlanFile.create(workspace, row.id)
    await this.#updatePlan({ goal: row.goal, startingPoint })
    const name = this.#plan.path
    log.append(
      'plan',
      name === 'PLAN.md' ? 'Wrote PLAN.md.' : `Wrote ${name}: the PLAN.md that is there is yours.`,
    )
    return startingPoint
  }

  async #scaffold(startingPoint: StartingPoint): Promise<void> {
    const { workspace, log, server } = this.#context
    const { catalog, servers } = this.#dependencies
    if (startingPoint.kind === 'app') {
      this.#startStep(
        'scaffold',
        `Goes on with the app that is there: ${startingPoint.description}. ${startingPoint.reason}`,
      )
      return
    }
    const { choice, scaffold: plan } = startingPoint
    const { id: template } = choice.template
    const paths = plan.copies.map(({ path }) => path)
    this.#startStep('scaffold', `Copies the template ${template}.`, { template, scaffold: paths })
    await applyScaffold(workspace, catalog, plan)
    servers.meter.changed(server)
    const removed = plan.removals.map(({ path }) => path)
    if (removed.length > 0) log.append('scaffold', `Removed, of an earlier template: ${pathsText(removed)}.`)
    log.append('scaffold', paths.length === 0 ? 'Copied nothing.' : `Copied: ${pathsText(paths)}.`)
    if (plan.kept.length > 0) {
      log.append('scaffold', `Left as they are, since they were there: ${pathsText(plan.kept)}.`)
    }
  }

  async #implement(startingPoint: StartingPoint): Promise<void> {
    const { workspace, log, server, isExcluded } = this.#context
    const { servers } = this.#dependencies
    this.#startStep('implement', 'The agent works on the goal.', { artifacts: await this.#listChanged() })
    const before = await takeSnapshot(workspace, isExcluded)
    const agent = await this.#dependencies.agent()
    const { status, result, idle } = await implement(this.#context, {
      agent,
      startingPoint,
      planPath: this.#plan?.path ?? 'PLAN.md',
      onChange: () => servers.meter.changed(server),
    })
    const changes = this.#withoutPlan(diffSnapshots(before, await takeSnapshot(workspace, isExcluded)))
    if (status === 'failed') throw new BuildFailure(result)
    if (idle === true) {
      this.#dependencies.records.markSkipped(this.#context.row.id, 'implement')
      log.append('implement', 'Nothing was implemented.')
    }
    if (result.trim() !== '') log.append('implement', result)
    const lines = changeLines(changes)
    for (const line of lines) log.append('implement', line)
    if (lines.length === 0 && idle !== true) log.append('implement', 'No file was changed.')
    await this.#updatePlan({ implementation: { idle: idle === true, result, changes } })
  }

  /** Installs and builds the app, which will have an address. @returns the plan to start it */
  async #prepare(address: Readonly<Record<string, string>>): Promise<AppPlan> {
    const { row, sandbox, workspace, log, signal, environment } = this.#context
    this.#startStep('install', 'Finds out what the app needs.')
    const preparation = await this.#dependencies.preparation()
    const owner = { kind: 'build', id: row.id } as const
    const target = { owner, serverId: row.serverId, sandbox, workspace, directory: '', log, signal }
    const app = await preparation.plan(target)
    if (app.install === null) log.append('install', 'There is nothing to install.')
    await preparation.make(target, app, (step) => {
      if (step === 'install') return { ...address, ...environment(app) }
      this.#startStep('build', app.build === null ? 'There is nothing to build.' : 'Builds the app.')
      this.#warnOfMissingVariables(app)
      return { ...address, ...environment() }
    })
    signal.throwIfAborted()
    await this.#updatePlan({ app })
    return app
  }

  #warnOfMissingVariables(app: AppPlan): void {
    const missing = missingVariables(app, new Set(Object.keys(this.#context.environment())))
    if (missing.length === 0) return
    this.#context.log.append(
      'berth',
      `The app asks for variables that have no value: ${missing.join(', ')}. Set them as secrets of the server, where it cannot do without.`,
    )
  }

  /** Records that a phase starts. @throws the signal's reason */
  #startStep(key: StepKey, text: string, progress = {}): void {
    const { row, log, signal } = this.#context
    signal.throwIfAborted()
    this.#step = key
    this.#dependencies.records.setRunningStep(row.id, key, progress)
    log.append(key, text)
  }

  /** Adds content to the plan's file. */
  async #updatePlan(content: Partial<PlanContent> & { goal?: string }): Promise<void> {
    const { log } = this.#context
    this.#planContent = { ...this.#planContent, ...content } as PlanContent
    const text = (all: string): string => log.masks.mask(all)
    try {
      await this.#plan?.write(text(planText(this.#planContent)), text(outcomeText(this.#planContent)))
    } catch (error) {
      if (!(error instanceof WorkspaceError) || error.fault === 'disk_full') throw error
      // Another file has taken its place. The app works without the plan.
      log.append('berth', `The plan is not brought up to date: ${error.message}`)
    }
  }

  async #reportFailure(error: unknown): Promise<void> {
    const { row, log } = this.#context
    const key = this.#step
    const message = explanationOf(error)
    if (message === null) {
      this.#dependencies.logger.error('a build failed of an internal error', { buildId: row.id, error })
    }
    const reason = message ?? "An internal error of berth; berth's log says more."
    log.append('berth', `The build failed in the phase ${key}: ${reason}`)
    try {
      if (this.#planContent !== null) await this.#updatePlan({ failure: { key, reason } })
    } catch (error) {
      // The workspace cannot be written to, which may be why the build failed.
      if (!(error instanceof WorkspaceError)) throw error
    }
  }

  /** Returns the paths that the build has created or changed so far. */
  async #listChanged(): Promise<string[]> {
    const { workspace, isExcluded } = this.#context
    if (this.#initialSnapshot === null) return []
    return writtenPaths(diffSnapshots(this.#initialSnapshot, await takeSnapshot(workspace, isExcluded)))
  }

  #withoutPlan({ created, changed, removed }: Changes): Changes {
    const isOther = (path: string): boolean => path !== this.#plan?.path
    return {
      created: created.filter(isOther),
      changed: changed.filter(isOther),
      removed: removed.filter(isOther),
    }
  }
}

/** Returns those of the paths that are files. */
export async function filterExisting(
  { workspace }: Pick<BuildContext, 'workspace'>,
  paths: readonly string[],
): Promise<string[]> {
  const found = await Promise.all(
    paths.map(async (path) => (await workspace.stat(path).catch(() => null))?.kind === 'file'),
  )
  return paths.filter((_, n) => found[n])
}
