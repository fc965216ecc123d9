import { notFound } from '../../errors.ts'
import { missingVariables } from '../../hosting/app-runtime/plan.ts'
import type { HostedApp } from '../../hosting/hosted-app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { FileChange } from '../apps/file-change.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { BringUp, failureMessage } from './bring-up.ts'
import type { ProjectCode } from './code.ts'
import type { InitPhase } from './model.ts'
import type { ProjectRecords } from './records.ts'
import { hasUrl, type ProjectRow, projectDirectory, projectOwner } from './table.ts'

/** Dependencies of the apps. */
interface ProjectAppsDependencies {
  ids: Ids
  logger: Logger
  records: ProjectRecords
  servers: ServersService
  secrets: SecretsService
  code: ProjectCode
  hosting: Hosting
}

/** Phases in which a bring-up has ended or waits for variables. */
export const IDLE_PHASES: ReadonlySet<InitPhase | null> = new Set([
  null,
  'awaiting_secrets',
  'ready',
  'failed',
])

const isStarting = ({ initPhase }: ProjectRow): boolean =>
  initPhase === 'start' || initPhase === 'healthcheck'

/** The options of `init`. */
interface InitOptions {
  /** Whether to continue without the missing variables. */
  proceed: boolean
  /** The first phase of a new bring-up. */
  from: 'fetch' | 'install' | 'start'
}

/** Runs the apps of projects: brings them up, resumes them with their servers, and stops them. */
export class ProjectApps implements ServerLifecycleListener {
  readonly #dependencies: ProjectAppsDependencies
  readonly #records: ProjectRecords
  readonly #bringUp: BringUp
  /** Projects that are being removed. Nothing of them starts again. */
  readonly #removing = new Set<string>()
  /** Projects whose upload is being unpacked. */
  readonly #uploads = new Map<string, { abort: AbortController; done: Promise<void> }>()
  #stopping = false

  constructor(dependencies: ProjectAppsDependencies) {
    this.#dependencies = dependencies
    this.#records = dependencies.records
    const { hosting } = dependencies
    this.#bringUp = new BringUp({
      ...dependencies,
      preparation: hosting.preparation,
      appOf: (row) => this.app(row),
      urlOf: (row) => (hasUrl(row) ? this.urlOf(row) : null),
      environmentOf: (row) => this.environment(row),
      updateExposure: (row) => this.updateExposure(row),
    })
    dependencies.secrets.onChange((serverId, projectId) => this.#secretsChanged(serverId, projectId))
  }

  /** Returns the URL of a project while it is public. */
  urlOf({ port }: ProjectRow): string {
    return this.#dependencies.hosting.urlOf(port)
  }

  /** Returns the variables that a project's app is given: its address while it has one, and its own above that. */
  environment(row: ProjectRow): Readonly<Record<string, string>> {
    return {
      ...(hasUrl(row) && this.#dependencies.hosting.addressVariable(row.port)),
      ...this.#dependencies.secrets.environment(row.serverId, row.id),
    }
  }

  /** Returns the app of a project. */
  app(row: ProjectRow): Promise<HostedApp> {
    const { id, serverId, slug, port, runtimeStatus } = row
    return this.#dependencies.hosting.app({
      owner: projectOwner(id),
      id,
      serverId,
      directory: projectDirectory({ slug }),
      port,
      slug,
      hasRun: runtimeStatus !== 'unbuilt',
      onChange: (change) => {
        if (change === 'recovered') this.#recovered(id)
        else if (change === 'changed') this.#records.notifyChange(row)
        else this.#records.setRuntimeStatus(id, change === 'up' ? 'running' : 'paused')
      },
    })
  }

  /**
   * Unpacks the upload of a new project. Nothing of the project starts before that ends. Deleting the project aborts it.
   *
   * @throws BerthError 404 if the project was deleted meanwhile; whatever `unpack` throws
   */
  async unpackUpload({ id }: ProjectRow, unpack: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const abort = new AbortController()
    const done = unpack(abort.signal)
    this.#uploads.set(id, { abort, done })
    try {
      await done
      abort.signal.throwIfAborted()
    } finally {
      this.#uploads.delete(id)
    }
  }

  /**
   * Exposes a new project and starts its bring-up, if it has code.
   *
   * @param fetched whether its code is in place already
   */
  async startNew(row: ProjectRow, fetched: boolean): Promise<void> {
    await this.updateExposure(row)
    if (row.initPhase === null) return
    if (fetched) this.#records.setPhase(row.id, 'install')
    this.#startBringUp(row.id)
  }

  /** Opens or closes the project's site, and restarts its app, after a change of its visibility. */
  async applyVisibility(row: ProjectRow): Promise<void> {
    await this.updateExposure(row)
    this.#applyVariables(row)
  }

  /** Opens or closes the project's site according to its visibility. */
  async updateExposure(row: ProjectRow): Promise<void> {
    const app = await this.app(row)
    await (hasUrl(row) ? app.expose() : app.unexpose())
    // The project may have been deleted with its server meanwhile.
    if (!this.#records.find(row.id)) await this.remove(row)
  }

  /** Continues a bring-up, or starts a new one if the last has ended. */
  init(row: ProjectRow, { proceed, from }: InitOptions): void {
    const { ids } = this.#dependencies
    if (row.initPhase === null || row.initPhase === 'ready' || row.initPhase === 'failed') {
      this.#records.startBringUp(row.id, ids.next('irun'), from, proceed)
    } else if (proceed) {
      this.#records.setProceed(row.id)
    }
    this.#startBringUp(row.id)
  }

  /**
   * Begins a new bring-up with a phase. None may run.
   *
   * @param change of the files, to be undone if the bring-up fails
   */
  begin(
    { id }: ProjectRow,
    phase: 'install' | 'build' | 'start',
    proceed: boolean,
    change: FileChange | null,
  ): void {
    this.#records.startBringUp(id, this.#dependencies.ids.next('irun'), phase, proceed)
    this.#startBringUp(id, change)
  }

  /**
   * Ends a bring-up that runs, because another one follows. Resolves when nothing of it runs; the version before it
   * responds again.
   */
  async supersede(id: string): Promise<void> {
    await this.#bringUp.supersede(id)
  }

  /** Reports whether the last bring-up of a project failed and left the version before in place. */
  isRestored(row: ProjectRow): boolean {
    return this.#bringUp.isRestored(row)
  }

  /** Resolves when no bring-up of the project runs. */
  waitForBringUp(id: string): Promise<void> {
    return this.#bringUp.wait(id)
  }

  /** Aborts a project's upload and bring-up and stops its app. Resolves when none of them runs. */
  async shutDown(id: string): Promise<void> {
    this.#removing.add(id)
    const upload = this.#uploads.get(id)
    upload?.abort.abort(notFound(`The project "${id}"`))
    await upload?.done.catch(() => {})
    await this.#bringUp.abort(id, 'dropped')
    await this.#dependencies.hosting.find(id)?.stop('The project is being removed.')
  }

  /** Removes a project's site and log. Its files and its record are removed elsewhere. */
  async remove({ id }: ProjectRow): Promise<void> {
    await this.#dependencies.hosting.remove(id)
    this.#removing.delete(id)
  }

  /** Opens the sites of all public projects. Requests wait there until the apps run. */
  async exposeAll(): Promise<void> {
    await Promise.all(this.#records.listAll().map((row) => this.updateExposure(row)))
  }

  /** Continues the bring-ups that the last stop of berth interrupted. */
  resumeBringUps(): void {
    for (const { id, initPhase } of this.#records.listAll())
      if (!IDLE_PHASES.has(initPhase)) this.#startBringUp(id)
  }

  /** Starts the apps of the server's projects. */
  serverStarted(serverId: string): void {
    for (const { id } of this.#records.listByServer(serverId)) {
      if (!this.#bringUp.isRunning(id)) void this.#resumeProject(id)
    }
  }

  /** Continues an interrupted bring-up, or starts the app again if it has run. */
  async #resumeProject(id: string): Promise<void> {
    // A bring-up that was aborted when the server stopped may not have ended yet.
    await this.#bringUp.wait(id)
    const row = this.#records.find(id)
    if (row === undefined) return
    if (!IDLE_PHASES.has(row.initPhase)) this.#startBringUp(id)
    else if (row.runtimeStatus !== 'unbuilt') await this.#resumeApp(row)
  }

  /** Fails the bring-ups on the server. */
  serverStopping(serverId: string): void {
    for (const { id } of this.#records.listByServer(serverId)) {
      void this.#bringUp.abort(id, 'server stopped')
      this.#records.setRuntimeStatus(id, 'paused')
    }
  }

  /** Aborts the bring-ups on the server without an event: its projects are deleted with it. */
  serverDeleting(server: ServerRow): void {
    for (const { id } of this.#records.listByServer(server.id)) void this.#bringUp.abort(id, 'dropped')
  }

  /** Stops all bring-ups. The next start continues them. */
  async stop(): Promise<void> {
    this.#stopping = true
    await this.#bringUp.stop()
  }

  #startBringUp(id: string, change: FileChange | null = null): void {
    if (!this.#stopping && !this.#removing.has(id) && !this.#uploads.has(id)) this.#bringUp.start(id, change)
  }

  /** Notes that an app responds whose last bring-up failed: with files that were mended since, or started again. */
  #recovered(id: string): void {
    const row = this.#records.find(id)
    if (row?.initPhase === 'failed' && !this.#bringUp.isRunning(id)) this.#records.markRecovered(id)
    else if (row) this.#records.notifyChange(row)
  }

  /** Starts an app again with the plan of its last bring-up. */
  async #resumeApp(row: ProjectRow): Promise<void> {
    const { secrets, logger } = this.#dependencies
    if (row.plan === null) return
    try {
      const app = await this.app(row)
      app.maskValues(secrets.environment(row.serverId, row.id))
      await app.start(row.plan, this.environment(row))
      this.#recovered(row.id)
    } catch (error) {
      logger.warn('the app of a project did not start again', {
        projectId: row.id,
        error: failureMessage(error) ?? error,
      })
    }
  }

  #secretsChanged(serverId: string, projectId: string): void {
    const rows = projectId === '' ? this.#records.listByServer(serverId) : [this.#records.find(projectId)]
    for (const row of rows) if (row !== undefined) this.#applyVariables(row)
  }

  /** Restarts an app with its new variables, in the background, or continues a bring-up that waited for them. */
  #applyVariables(row: ProjectRow): void {
    this.#tryVariables(row).catch((error) =>
      this.#dependencies.logger.warn('an app did not start with its new variables', {
        projectId: row.id,
        error: failureMessage(error) ?? error,
      }),
    )
  }

  async #tryVariables(row: ProjectRow): Promise<void> {
    const environment = this.environment(row)
    const app = await this.app(row)
    app.maskValues(this.#dependencies.secrets.environment(row.serverId, row.id))
    // `BringUp` restarts an app itself if the variables change while it starts.
    if (this.#bringUp.isRunning(row.id) && isStarting(row)) return
    if (row.initPhase !== 'awaiting_secrets') return app.restart(environment)
    const given = new Set(Object.keys(environment))
    if (row.plan && missingVariables(row.plan, given).length === 0) this.#startBringUp(row.id)
  }
}
