import type { Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { explanationOf } from '../../errors.ts'
import { AppError, AppFailure, type AppPlan, missingVariables } from '../../hosting/app.ts'
import type { AppWorkspace, HostedApp, Hosting } from '../../hosting/hosting.ts'
import { accountCaller } from '../../http/caller.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { FileChange } from '../apps/file-change.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { ProjectCode } from './code.ts'
import type { InitPhase } from './model.ts'
import type { ProjectRecords } from './records.ts'
import { type ProjectRow, projectDirectory, projectOwner } from './table.ts'

/** Number of log lines in the event of a failure. */
const FAILURE_LOG_LINES = 50

/** The phases that do work, in order. */
const STEPS = ['fetch', 'install', 'build', 'start'] as const

type Step = (typeof STEPS)[number]

/** The phases of a bring-up: the step with which it goes on from each, and whether nothing goes on in it by itself. */
export const PHASES: Readonly<Record<InitPhase, { readonly continues: Step; readonly isIdle: boolean }>> = {
  fetch: { continues: 'fetch', isIdle: false },
  install: { continues: 'install', isIdle: false },
  // Builds read the variables that it waits for.
  awaiting_secrets: { continues: 'build', isIdle: true },
  build: { continues: 'build', isIdle: false },
  start: { continues: 'start', isIdle: false },
  healthcheck: { continues: 'start', isIdle: false },
  ready: { continues: 'start', isIdle: true },
  failed: { continues: 'start', isIdle: true },
}

/** Reports whether no bring-up goes on: it has ended, waits for variables, or there was none. */
export const isIdle = (phase: InitPhase | null): boolean => phase === null || PHASES[phase].isIdle

/** Dependencies of a bring-up. */
export interface BringUpDependencies {
  records: ProjectRecords
  servers: ServersService
  secrets: SecretsService
  code: ProjectCode
  hosting: Hosting
  logger: Logger
}

/** The app of a project, as a bring-up uses it. */
interface BroughtUpApp {
  readonly id: string
  /** Returns what runs of it. */
  hosted(row: ProjectRow): Promise<HostedApp>
  /** Returns its URL, or null while it has none. */
  urlOf(row: ProjectRow): string | null
  /** Returns the variables that it is given. */
  environment(row: ProjectRow): Readonly<Record<string, string>>
  /** Opens or closes its site, as it has a URL or not. */
  updateExposure(row: ProjectRow): Promise<void>
}

/** Why a bring-up is aborted. */
type AbortReason =
  /** Its server stops. The bring-up fails. */
  | 'server stopped'
  /** The project is deleted, or berth stops and continues at the next start. Nothing is written. */
  | 'dropped'

/** The objects that the steps of a bring-up use. */
interface BringUpContext {
  server: ServerRow
  sandbox: Sandbox
  app: HostedApp
}

/**
 * Brings a project from its code to a running app, phase by phase. A phase is recorded before its work begins, and
 * each can be repeated, so an interrupted bring-up continues with its phase.
 */
export class BringUp {
  /** Resolves when nothing of it runs. Never rejects. */
  readonly done: Promise<void>
  readonly #dependencies: BringUpDependencies
  readonly #app: BroughtUpApp
  /** Of the files, which is undone if the new version does not come up; null for none. */
  readonly #change: FileChange | null
  /** Ends it, and the version before too. */
  readonly #abort = new AbortController()
  /** Ends it, because another one follows. The version before goes on. */
  readonly #supersede = new AbortController()
  /** Aborted for either reason. */
  readonly #signal = AbortSignal.any([this.#abort.signal, this.#supersede.signal])
  #isOver = false
  #restoredRun: string | null = null

  /** Continues from the recorded phase of a project. */
  constructor(dependencies: BringUpDependencies, app: BroughtUpApp, change: FileChange | null) {
    this.#dependencies = dependencies
    this.#app = app
    this.#change = change
    this.done = this.#run()
      .catch((error) =>
        dependencies.logger.error('a bring-up could not be followed to its end', {
          projectId: app.id,
          error,
        }),
      )
      .finally(() => {
        this.#isOver = true
      })
  }

  /** Whether nothing of it runs. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether it runs and was not ended from outside. */
  get isRunning(): boolean {
    return !this.#isOver && !this.#signal.aborted
  }

  /** Its run id, if it has failed and left the version before in place; else null. */
  get restoredRun(): string | null {
    return this.#restoredRun
  }

  /** Aborts it. Resolves when nothing of it runs. */
  abort(reason: AbortReason): Promise<void> {
    this.#abort.abort(reason)
    return this.done
  }

  /** Ends it before another one. The version before goes on. Resolves when nothing of it runs. */
  supersede(): Promise<void> {
    this.#supersede.abort('dropped' satisfies AbortReason)
    return this.done
  }

  async #run(): Promise<void> {
    const { records, servers, logger } = this.#dependencies
    const { id } = this.#app
    const signal = this.#signal
    const row = records.find(id)
    if (!row) return
    const app = await this.#app.hosted(row)
    let done = () => {}
    let work: BringUpContext | null = null
    const run = runOf(row)
    app.log.beginRun(run)
    app.markStarting()
    try {
      const used = await servers.use(accountCaller(row.accountId), row.serverId)
      done = used.done
      signal.throwIfAborted()
      work = { server: used.row, sandbox: used.sandbox, app }
      const complete = await this.#runSteps(row, work)
      if (complete) {
        await this.#change?.discard()
        const aborted = this.#abort.signal
        const warnings = await app.findWarnings(aborted)
        aborted.throwIfAborted()
        records.markReady(row, this.#app.urlOf(records.find(id) ?? row), warnings)
        // A worker may have done its work already.
        if (!app.isUp) records.setRuntimeStatus(id, 'paused')
        app.log.appendPhase('ready', run)
      } else app.markDown('It waits for variables that it cannot start without.')
    } catch (error) {
      if (signal.aborted && signal.reason === 'dropped') return
      const reason = signal.aborted
        ? 'The server was stopped. Start it and initialise the project again.'
        : explanationOf(error)
      if (reason === null) logger.error('a project could not be brought up', { projectId: id, error })
      if (!isToldByApp(error, signal, records.find(id)?.initPhase))
        app.log.append('berth', reason ?? "An internal error of berth; berth's log says more.")
      const { initPhase, plan = null } = records.find(id) ?? {}
      await this.#restore(row, work)
      // The app that ran before may be down: berth was killed, or the server was stopped.
      if (!app.isUp) records.setRuntimeStatus(id, 'paused')
      const phase = failedPhase(error, initPhase)
      app.markDown('It could not be brought up; its log says why.', commandOf(plan, phase))
      records.markFailed(row, phase, await app.lastLines(FAILURE_LOG_LINES))
      app.log.appendPhase('failed', run)
    } finally {
      app.log.endRun()
      done()
      const server = servers.records.find(row.serverId)
      if (server) servers.meter.changed(server)
    }
  }

  /**
   * Puts the code of the version before back after a failure, and installs and builds it again as far as the failed
   * version has done that. It can then be started again at any time.
   */
  async #restore(row: ProjectRow, work: BringUpContext | null): Promise<void> {
    const { records, servers, code, hosting, logger } = this.#dependencies
    const { preparation } = hosting
    const change = this.#change
    const { log } = await this.#app.hosted(row)
    try {
      if (change === null || !(await change.putBack()) || work === null) return
      log.append('berth', 'The files of the version before are back in place.')
      const restored = records.find(row.id)
      if (!restored?.plan || this.#signal.aborted) return
      const { plan } = restored
      const workspace = servers.workspace(work.server)
      const location = this.#locationOf(row, work, workspace)
      const environment = this.#app.environment(restored)
      const fingerprint = await code.fingerprint(restored, plan, workspace)
      if (plan.install !== null && fingerprint !== records.installedFrom(row.id)) {
        await preparation.install(location, plan, environment)
        records.setInstalled(row.id, fingerprint)
      }
      if (change.isBuiltOver) await preparation.build(location, plan, environment)
      await change.discard()
      this.#restoredRun = runOf(records.find(row.id) ?? row)
    } catch (error) {
      logger.warn('the version before of a project is not restored', {
        projectId: row.id,
        error: explanationOf(error) ?? error,
      })
      log.append('berth', `The version before cannot be started again: ${messageOf(error)}`)
    }
  }

  /**
   * @returns whether the app responds; otherwise it waits for variables
   */
  async #runSteps(row: ProjectRow, work: BringUpContext): Promise<boolean> {
    const { records } = this.#dependencies
    const first = row.initPhase === null ? 'start' : PHASES[row.initPhase].continues
    for (const step of STEPS.slice(STEPS.indexOf(first))) {
      const now = records.find(row.id) ?? row
      if (step === firstStepWithVariables(now.plan) && this.#awaitsSecrets(now)) {
        work.app.log.appendPhase('awaiting_secrets', runOf(row))
        return false
      }
      records.setPhase(row.id, step)
      if (step !== 'build' || now.plan?.build !== null) work.app.log.appendPhase(step, runOf(row))
      await this.#runStep(step, now, work)
      // A version that responds already is no longer superseded: it is the version before of what follows.
      const ends = step === 'start' ? this.#abort.signal : this.#signal
      ends.throwIfAborted()
    }
    return true
  }

  async #runStep(step: Step, row: ProjectRow, work: BringUpContext): Promise<void> {
    const { records, servers, secrets, code, hosting } = this.#dependencies
    const { preparation } = hosting
    const { server, app } = work
    const workspace = servers.workspace(server)
    app.maskValues(secrets.environment(row.serverId, row.id))
    const environment = this.#app.environment(row)
    if (step === 'fetch') return code.fetch(row, { server, log: app.log, signal: this.#signal })
    const target = this.#locationOf(row, work, workspace)
    if (step === 'install') {
      const plan = await preparation.plan(target)
      records.setPlan(row.id, plan)
      await this.#app.updateExposure(records.find(row.id) ?? row)
      const installed = await code.fingerprint(row, plan, workspace)
      records.setInstalled(row.id, null)
      secrets.generate(row.serverId, row.id, plan, environment)
      const complete = secrets.environment(row.serverId, row.id)
      app.maskValues(complete)
      await preparation.install(target, plan, complete)
      // With a lock file that the install has written the command is another one, as the next push finds it.
      const next = await preparation.detect(target)
      const isSame =
        Bun.deepEquals([next.build, next.start], [plan.build, plan.start]) &&
        installed === (await code.fingerprint(row, plan, workspace))
      if (isSame) records.setPlan(row.id, next)
      records.setInstalled(row.id, isSame ? await code.fingerprint(row, next, workspace) : installed)
      return
    }
    const plan = planOf(row)
    if (step === 'build') return preparation.build(target, plan, environment)
    await this.#startApp(row, plan, app)
  }

  /** Starts the app with the current variables, and again if they change meanwhile. */
  async #startApp(row: ProjectRow, plan: AppPlan, app: HostedApp): Promise<void> {
    const { records } = this.#dependencies
    const environmentNow = () => this.#app.environment(records.find(row.id) ?? row)
    const spawned = () => {
      records.setPhase(row.id, 'healthcheck')
      if (plan.start.kind === 'command') app.log.appendPhase('healthcheck', runOf(row))
    }
    const beforeFallback = async () => void (await this.#change?.putBack())
    for (;;) {
      const environment = environmentNow()
      const isOld = () => !Bun.deepEquals(environment, environmentNow())
      try {
        await app.start(plan, environment, {
          ...{ spawned, beforeFallback },
          ...{ signal: this.#abort.signal, withdrawn: this.#supersede.signal },
        })
        if (!isOld()) return
      } catch (error) {
        if (this.#signal.aborted || !isOld()) throw error
      }
    }
  }

  /** Reports whether required variables are missing, and records it if so. */
  #awaitsSecrets(row: ProjectRow): boolean {
    if (row.proceed) return false
    const { records } = this.#dependencies
    const given = new Set(Object.keys(this.#app.environment(row)))
    const missing = missingVariables(planOf(row), given)
    if (missing.length > 0) records.markAwaitingSecrets(row, missing)
    return missing.length > 0
  }

  /** Returns where the project is installed and built. */
  #locationOf(row: ProjectRow, { sandbox, app }: BringUpContext, workspace: Workspace): AppWorkspace {
    return {
      owner: projectOwner(row.id),
      serverId: row.serverId,
      sandbox,
      workspace,
      directory: projectDirectory(row),
      isWorker: row.kind === 'worker',
      within: row.directory,
      log: app.log,
      signal: this.#signal,
    }
  }
}

const runOf = ({ id, initRunId }: ProjectRow): string => initRunId ?? id

/** Returns the command that runs in a phase; null if none does. */
function commandOf(plan: AppPlan | null, phase: InitPhase): string | null {
  if (plan === null || phase === 'fetch') return null
  if (phase === 'install' || phase === 'build') return plan[phase]
  return plan.start.kind === 'command' ? plan.start.command : null
}

/** Returns the phase in which a bring-up failed. An app that ended before it listened has not got to its health check. */
const failedPhase = (error: unknown, phase: InitPhase | null | undefined): InitPhase =>
  error instanceof AppFailure && error.endedUnheard ? 'start' : (phase ?? 'fetch')

/** Returns the first step that needs the variables. Builds read them too. */
const firstStepWithVariables = (plan: AppPlan | null): Step => (plan?.build == null ? 'start' : 'build')

function planOf({ plan }: ProjectRow): AppPlan {
  if (plan) return plan
  throw new AppError('How the app is started is not known. Initialise the project again.')
}

/** Reports whether the app's log says already why it did not start, and what becomes of the version before. */
const isToldByApp = (error: unknown, signal: AbortSignal, phase: InitPhase | null | undefined): boolean =>
  error instanceof AppFailure && !signal.aborted && (phase === 'start' || phase === 'healthcheck')
