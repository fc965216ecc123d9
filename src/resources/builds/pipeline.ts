import { type Agent, AgentError } from '../../agents/agent.ts'
import { ComputeError } from '../../compute/driver.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { BerthError } from '../../errors.ts'
import { AppError, AppFailure, type AppPlan, missingVariables } from '../../hosting/app-runtime/plan.ts'
import type { Preparation } from '../../hosting/preparation.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { DeploymentsService } from '../deployments/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'
import { scaffold } from './files/scaffold.ts'
import { type Changes, compare, type Snapshot, takeSnapshot, written } from './files/snapshot.ts'
import { implement } from './implement/implement.ts'
import { decideBeginning } from './plan/begin.ts'
import {
  type Beginning,
  changeLines,
  newsText,
  type PlanFacts,
  pathsText,
  planText,
} from './plan/document.ts'
import { PlanFile } from './plan/file.ts'
import type { BuildRecords } from './records.ts'
import type { StepKey } from './steps.ts'
import { BuildFailure, type Work } from './work.ts'

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
export interface Built {
  /** The URL of the app; null if the build failed. */
  readonly url: string | null
  readonly artifacts: readonly string[]
}

/**
 * Runs the phases of a build, from its plan to an app that responds. Each phase is recorded before its work begins.
 */
export class Pipeline {
  readonly #dependencies: PipelineDependencies
  readonly #work: Work
  #key: StepKey = 'plan'
  #plan: PlanFile | null = null
  #facts: PlanFacts | null = null
  /** The workspace as it was when the build began. */
  #before: Snapshot | null = null

  constructor(dependencies: PipelineDependencies, work: Work) {
    this.#dependencies = dependencies
    this.#work = work
  }

  /**
   * Runs the phases. A failure is written to the log and the plan.
   *
   * @throws the signal's reason
   */
  async run(): Promise<Built> {
    const { signal } = this.#work
    const deployments = await this.#dependencies.deployments()
    // Keeps the current deployment from restarting again and again while its files change.
    const resume = await deployments.pauseWatch(this.#work.row.serverId)
    let url: string | null = null
    try {
      url = await this.#goOn(deployments)
    } catch (error) {
      signal.throwIfAborted()
      await this.#fail(error)
    } finally {
      await resume()
    }
    return { url, artifacts: await this.artifacts() }
  }

  /** Paths of the files that the build has made or changed, and that are there. */
  async artifacts(): Promise<readonly string[]> {
    const { row } = this.#work
    const recorded = this.#dependencies.records.find(row.id)
    if (recorded === undefined || this.#key !== 'deploy') return this.#changed()
    // What the app itself writes since it was started is not the build's.
    return existing(this.#work, recorded.artifacts)
  }

  async #goOn(deployments: DeploymentsService): Promise<string> {
    const { row, log, signal } = this.#work
    const beginning = await this.#decide()
    await this.#scaffold(beginning)
    await this.#implement(beginning)
    const plan = await this.#prepare()
    this.#enter('deploy', 'Publishes the app.', { artifacts: await this.#changed() })
    const { url } = await deployments.publish(accountCaller(row.accountId), row.serverId, { plan, signal })
    log.append('deploy', `It answers at ${url}`)
    return url
  }

  async #decide(): Promise<Beginning> {
    const { row, workspace, log, isElsewhere } = this.#work
    const { records, catalog } = this.#dependencies
    this.#enter('plan', 'Decides what to begin with.')
    this.#before = await takeSnapshot(workspace, isElsewhere)
    const [preparation, agent] = await Promise.all([
      this.#dependencies.preparation(),
      this.#dependencies.agent(),
    ])
    const earlier = records.scaffolded(row.serverId).filter(({ id }) => id !== row.id)
    const beginning = await decideBeginning(this.#work, {
      preparation,
      catalog,
      agent,
      earlier,
      snapshot: this.#before,
    })
    this.#plan = await PlanFile.choose(workspace, row.id)
    await this.#tell({ goal: row.goal, beginning })
    const name = this.#plan.path
    log.append(
      'plan',
      name === 'PLAN.md' ? 'Wrote PLAN.md.' : `Wrote ${name}: the PLAN.md that is there is yours.`,
    )
    return beginning
  }

  async #scaffold(beginning: Beginning): Promise<void> {
    const { workspace, log, server } = this.#work
    const { catalog, servers } = this.#dependencies
    if (beginning.kind === 'app') {
      this.#enter('scaffold', `Goes on with the app that is there: ${beginning.what}. ${beginning.why}`)
      return
    }
    const { choice, scaffold: plan } = beginning
    const { id: template } = choice.template
    const paths = plan.copies.map(({ path }) => path)
    this.#enter('scaffold', `Copies the template ${template}.`, { template, scaffold: paths })
    await scaffold(workspace, catalog, plan)
    servers.meter.changed(server)
    const removed = plan.removes.map(({ path }) => path)
    if (removed.length > 0) log.append('scaffold', `Removed, of an earlier template: ${pathsText(removed)}.`)
    log.append('scaffold', paths.length === 0 ? 'Copied nothing.' : `Copied: ${pathsText(paths)}.`)
    if (plan.stays.length > 0) {
      log.append('scaffold', `Left as they are, since they were there: ${pathsText(plan.stays)}.`)
    }
  }

  async #implement(beginning: Beginning): Promise<void> {
    const { workspace, log, server, isElsewhere } = this.#work
    const { servers } = this.#dependencies
    this.#enter('implement', 'The agent works on the goal.', { artifacts: await this.#changed() })
    const before = await takeSnapshot(workspace, isElsewhere)
    const agent = await this.#dependencies.agent()
    const { status, result, idle } = await implement(this.#work, {
      agent,
      beginning,
      plan: this.#plan?.path ?? 'PLAN.md',
      changed: () => servers.meter.changed(server),
    })
    const changes = this.#withoutPlan(compare(before, await takeSnapshot(workspace, isElsewhere)))
    if (status === 'failed') throw new BuildFailure(result)
    if (idle === true) log.append('implement', 'Nothing was implemented.')
    if (result.trim() !== '') log.append('implement', result)
    const lines = changeLines(changes)
    for (const line of lines) log.append('implement', line)
    if (lines.length === 0 && idle !== true) log.append('implement', 'No file was changed.')
    await this.#tell({ implementation: { idle: idle === true, result, changes } })
  }

  /** Installs and builds. @returns how the app is started */
  async #prepare(): Promise<AppPlan> {
    const { row, sandbox, workspace, log, signal, environment } = this.#work
    this.#enter('install', 'Finds out what the app needs.')
    const preparation = await this.#dependencies.preparation()
    const place = { serverId: row.serverId, sandbox, workspace, folder: '', log, signal }
    const app = await preparation.plan(place)
    if (app.install === null) log.append('install', 'There is nothing to install.')
    await preparation.install(place, app, environment())
    signal.throwIfAborted()
    this.#enter('build', app.build === null ? 'There is nothing to build.' : 'Builds the app.')
    this.#warnOfMissing(app)
    await preparation.build(place, app, environment())
    signal.throwIfAborted()
    await this.#tell({ app })
    return app
  }

  #warnOfMissing(app: AppPlan): void {
    const missing = missingVariables(app, new Set(Object.keys(this.#work.environment())))
    if (missing.length === 0) return
    this.#work.log.append(
      'berth',
      `The app asks for variables that have no value: ${missing.join(', ')}. Set them as secrets of the server, where it cannot do without.`,
    )
  }

  /** A phase begins. */
  #enter(key: StepKey, text: string, progress = {}): void {
    const { row, log, signal } = this.#work
    signal.throwIfAborted()
    this.#key = key
    this.#dependencies.records.enters(row.id, key, progress)
    log.append(key, text)
  }

  /** Updates the plan. */
  async #tell(facts: Partial<PlanFacts> & { goal?: string }): Promise<void> {
    const { log } = this.#work
    this.#facts = { ...this.#facts, ...facts } as PlanFacts
    const text = (all: string): string => log.masks.mask(all)
    try {
      await this.#plan?.write(text(planText(this.#facts)), text(newsText(this.#facts)))
    } catch (error) {
      if (!(error instanceof WorkspaceError) || error.fault === 'disk_full') throw error
      // Somebody has put something else in its place, and the app does not need it.
      log.append('berth', `The plan is not brought up to date: ${error.message}`)
    }
  }

  async #fail(error: unknown): Promise<void> {
    const { row, log } = this.#work
    const key = this.#key
    const told = reasonOf(error)
    if (told === null) {
      this.#dependencies.logger.error('a build failed of an unforeseen fault', { buildId: row.id, error })
    }
    const reason = told ?? 'An unforeseen fault of berth itself; its own log says more.'
    log.append('berth', `The build failed in the phase ${key}: ${reason}`)
    try {
      if (this.#facts !== null) await this.#tell({ failure: { key, reason } })
    } catch (error) {
      // The workspace takes no file any more, which may be why it failed.
      if (!(error instanceof WorkspaceError)) throw error
    }
  }

  /** Paths that the build has made or changed so far. */
  async #changed(): Promise<string[]> {
    const { workspace, isElsewhere } = this.#work
    if (this.#before === null) return []
    return written(compare(this.#before, await takeSnapshot(workspace, isElsewhere)))
  }

  #withoutPlan({ made, changed, removed }: Changes): Changes {
    const isOther = (path: string): boolean => path !== this.#plan?.path
    return { made: made.filter(isOther), changed: changed.filter(isOther), removed: removed.filter(isOther) }
  }
}

/** Those of some paths at which there is a file. */
export async function existing(
  { workspace }: Pick<Work, 'workspace'>,
  paths: readonly string[],
): Promise<string[]> {
  const found = await Promise.all(
    paths.map(async (path) => (await workspace.stat(path).catch(() => null))?.kind === 'file'),
  )
  return paths.filter((_, n) => found[n])
}

/** Returns the message of a failure of the goal, the app or the server; null for any other error. */
function reasonOf(error: unknown): string | null {
  // The log contains the command's output already.
  if (error instanceof AppFailure) return error.summary
  const known = [BuildFailure, AgentError, AppError, BerthError, ComputeError, WorkspaceError]
  return known.some((kind) => error instanceof kind) ? (error as Error).message : null
}
