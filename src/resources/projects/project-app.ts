import { explanationOf, notFound } from '../../errors.ts'
import { missingVariables } from '../../hosting/app.ts'
import type { HostedApp } from '../../hosting/hosting.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { FileChange } from '../apps/file-change.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServerRow } from '../servers/table.ts'
import { BringUp, type BringUpDependencies, isIdle } from './bring-up.ts'
import { hasUrl, type ProjectRow, projectDirectory, projectOwner } from './table.ts'

/** Dependencies of the apps of projects. */
export interface ProjectAppDependencies extends BringUpDependencies {
  ids: Ids
  /** Reports whether berth stops, so that nothing is brought up any more. */
  isStopping: () => boolean
}

/** The options of `init`. */
interface InitOptions {
  /** Whether to continue without the missing variables. */
  proceed: boolean
  /** The first phase of a new bring-up. */
  from: 'fetch' | 'install' | 'start'
}

/**
 * The app of one project: its upload, its bring-up, the change of its files that has not come up, and what runs of it.
 * How far it has come is in the project's record.
 */
export class ProjectApp {
  readonly id: string
  /** The last change of its files. It is open until its version has come up or failed. */
  change: FileChange | null = null
  readonly #dependencies: ProjectAppDependencies
  /** The last bring-up. */
  #bringUp: BringUp | null = null
  /** Its upload while that is unpacked. */
  #upload: { abort: AbortController; done: Promise<void> } | null = null
  /** Whether the project is being removed. Nothing of it starts again. */
  #isRemoving = false

  constructor(id: string, dependencies: ProjectAppDependencies) {
    this.id = id
    this.#dependencies = dependencies
  }

  /** Returns its URL; null while it has none. */
  urlOf(row: ProjectRow): string | null {
    return hasUrl(row) ? this.#dependencies.hosting.urlOf(row.port) : null
  }

  /** Returns the variables that it is given: its address while it has one, and its own above that. */
  environment(row: ProjectRow): Readonly<Record<string, string>> {
    const { hosting, secrets } = this.#dependencies
    return {
      ...(hasUrl(row) && hosting.addressVariable(row.port)),
      ...secrets.environment(row.serverId, row.id),
    }
  }

  /** Returns what runs of it. */
  hosted(row: ProjectRow): Promise<HostedApp> {
    const { hosting, records } = this.#dependencies
    const { id, serverId, slug, port, runtimeStatus } = row
    return hosting.app({
      owner: projectOwner(id),
      id,
      serverId,
      directory: projectDirectory({ slug }),
      port,
      slug,
      hasRun: runtimeStatus !== 'unbuilt',
      onChange: (change) => {
        if (change === 'recovered') this.#noteRecovered()
        else if (change === 'changed') records.notifyChange(row)
        else records.setRuntimeStatus(id, change === 'up' ? 'running' : 'paused')
      },
    })
  }

  /** The change of its files that has not come up; null if there is none. */
  get openChange(): FileChange | null {
    return this.change?.isOpen ? this.change : null
  }

  /**
   * Unpacks the upload of a new project. Nothing of the project starts before that ends. Deleting the project aborts it.
   *
   * @throws BerthError 404 if the project was deleted meanwhile; whatever `unpack` throws
   */
  async unpackUpload(unpack: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const abort = new AbortController()
    const done = unpack(abort.signal)
    this.#upload = { abort, done }
    try {
      await done
      abort.signal.throwIfAborted()
    } finally {
      this.#upload = null
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
    if (fetched) this.#dependencies.records.setPhase(row.id, 'install')
    this.#start()
  }

  /** Opens or closes its site, and restarts it, after a change of the project's visibility. */
  async applyVisibility(row: ProjectRow): Promise<void> {
    await this.updateExposure(row)
    this.applyVariables(row)
  }

  /** Opens or closes its site according to the project's visibility. */
  async updateExposure(row: ProjectRow): Promise<void> {
    const { hosting, records } = this.#dependencies
    const app = await this.hosted(row)
    await (hasUrl(row) ? app.expose() : app.unexpose())
    // The project may have been deleted with its server meanwhile.
    if (!records.find(row.id)) await hosting.remove(row.id)
  }

  /** Continues a bring-up, or starts a new one if the last has ended. */
  init(row: ProjectRow, { proceed, from }: InitOptions): void {
    const { ids, records } = this.#dependencies
    if (row.initPhase === null || row.initPhase === 'ready' || row.initPhase === 'failed') {
      records.startBringUp(row.id, ids.next('irun'), from, proceed)
    } else if (proceed) {
      records.setProceed(row.id)
    }
    this.#start()
  }

  /**
   * Begins a new bring-up with a phase. None may run.
   *
   * @param change of the files, to be undone if the bring-up fails
   */
  begin(phase: 'install' | 'build' | 'start', proceed: boolean, change: FileChange | null): void {
    const { ids, records } = this.#dependencies
    records.startBringUp(this.id, ids.next('irun'), phase, proceed)
    this.#start(change)
  }

  /** Continues a bring-up that the last stop of berth interrupted, if there is one. */
  continue({ initPhase }: ProjectRow): void {
    if (!isIdle(initPhase)) this.#start()
  }

  /** Continues an interrupted bring-up, or starts the app again if it has run, after its server has started. */
  async resume(): Promise<void> {
    if (this.#bringUp?.isRunning) return
    // A bring-up that was aborted when the server stopped may not have ended yet.
    await this.#bringUp?.done
    const row = this.#dependencies.records.find(this.id)
    if (row === undefined) return
    if (!isIdle(row.initPhase)) this.#start()
    else if (row.runtimeStatus !== 'unbuilt') await this.#startAgain(row)
  }

  /**
   * Ends a bring-up that runs, because another one follows. Resolves when nothing of it runs; the version before it
   * responds again.
   */
  async supersede(): Promise<void> {
    await this.#bringUp?.supersede()
  }

  /** Aborts a bring-up that runs. Resolves when nothing of it runs. */
  async abort(reason: Parameters<BringUp['abort']>[0]): Promise<void> {
    await this.#bringUp?.abort(reason)
  }

  /** Resolves when no bring-up runs. */
  async waitForBringUp(): Promise<void> {
    await this.#bringUp?.done
  }

  /** Reports whether the last bring-up failed and left the version before in place. */
  isRestored({ initRunId }: ProjectRow): boolean {
    return initRunId !== null && this.#bringUp?.restoredRun === initRunId
  }

  /** Aborts its upload and bring-up and stops it, for good. Resolves when none of them runs. */
  async shutDown(): Promise<void> {
    this.#isRemoving = true
    const upload = this.#upload
    upload?.abort.abort(notFound(`The project "${this.id}"`))
    await upload?.done.catch(() => {})
    await this.abort('dropped')
    await this.#dependencies.hosting.find(this.id)?.stop('The project is being removed.')
  }

  /** Restarts it with its new variables, in the background, or continues a bring-up that waited for them. */
  applyVariables(row: ProjectRow): void {
    this.#tryVariables(row).catch((error) =>
      this.#dependencies.logger.warn('an app did not start with its new variables', {
        projectId: row.id,
        error: explanationOf(error) ?? error,
      }),
    )
  }

  async #tryVariables(row: ProjectRow): Promise<void> {
    const environment = this.environment(row)
    const app = await this.hosted(row)
    app.maskValues(this.#dependencies.secrets.environment(row.serverId, row.id))
    const isStarting = row.initPhase === 'start' || row.initPhase === 'healthcheck'
    // `BringUp` restarts an app itself if the variables change while it starts.
    if (this.#bringUp?.isRunning && isStarting) return
    if (row.initPhase !== 'awaiting_secrets') return app.restart(environment)
    const given = new Set(Object.keys(environment))
    if (row.plan && missingVariables(row.plan, given).length === 0) this.#start()
  }

  #start(change: FileChange | null = null): void {
    if (this.#dependencies.isStopping() || this.#isRemoving || this.#upload !== null) return
    if (this.#bringUp !== null && !this.#bringUp.isOver) return
    this.#bringUp = new BringUp(this.#dependencies, this, change)
  }

  /** Starts the app again with the plan of its last bring-up. */
  async #startAgain(row: ProjectRow): Promise<void> {
    const { secrets, logger } = this.#dependencies
    if (row.plan === null) return
    try {
      const app = await this.hosted(row)
      app.maskValues(secrets.environment(row.serverId, row.id))
      await app.start(row.plan, this.environment(row))
      this.#noteRecovered()
    } catch (error) {
      logger.warn('the app of a project did not start again', {
        projectId: row.id,
        error: explanationOf(error) ?? error,
      })
    }
  }

  /** Notes that the app responds whose last bring-up failed: with files that were fixed since, or started again. */
  #noteRecovered(): void {
    const { records } = this.#dependencies
    const row = records.find(this.id)
    if (row?.initPhase === 'failed' && !this.#bringUp?.isRunning) records.markRecovered(this.id)
    else if (row) records.notifyChange(row)
  }
}

/** The apps of all projects. Resumes them with their servers and with berth, and stops them. */
export class ProjectApps implements ServerLifecycleListener {
  readonly #dependencies: ProjectAppDependencies
  readonly #apps = new Map<string, ProjectApp>()
  #stopping = false

  constructor(dependencies: Omit<ProjectAppDependencies, 'isStopping'>) {
    this.#dependencies = { ...dependencies, isStopping: () => this.#stopping }
    const { records, secrets } = dependencies
    secrets.onChange((serverId, projectId) => {
      const rows = projectId === '' ? records.listByServer(serverId) : [records.find(projectId)]
      for (const row of rows) if (row !== undefined) this.of(row).applyVariables(row)
    })
  }

  /** Returns the app of a project. */
  of({ id }: Pick<ProjectRow, 'id'>): ProjectApp {
    const app = this.#apps.get(id) ?? new ProjectApp(id, this.#dependencies)
    this.#apps.set(id, app)
    return app
  }

  /** Removes a project's site and log. Its files and its record are removed elsewhere. */
  async remove({ id }: ProjectRow): Promise<void> {
    await this.#dependencies.hosting.remove(id)
    this.#apps.delete(id)
  }

  /** Opens the sites of all public projects. Requests wait there until the apps run. */
  async exposeAll(): Promise<void> {
    await Promise.all(this.#dependencies.records.listAll().map((row) => this.of(row).updateExposure(row)))
  }

  /** Continues the bring-ups that the last stop of berth interrupted. */
  resumeBringUps(): void {
    for (const row of this.#dependencies.records.listAll()) this.of(row).continue(row)
  }

  /** Starts the apps of the server's projects. */
  serverStarted(serverId: string): void {
    for (const row of this.#dependencies.records.listByServer(serverId)) void this.of(row).resume()
  }

  /** Fails the bring-ups on the server. */
  serverStopping(serverId: string): void {
    const { records } = this.#dependencies
    for (const row of records.listByServer(serverId)) {
      void this.of(row).abort('server stopped')
      records.setRuntimeStatus(row.id, 'paused')
    }
  }

  /** Aborts the bring-ups on the server without an event: its projects are deleted with it. */
  serverDeleting(server: ServerRow): void {
    for (const row of this.#dependencies.records.listByServer(server.id))
      void this.of(row)
        .abort('dropped')
        .then(() => this.#apps.delete(row.id))
  }

  /** Stops all bring-ups. The next start continues them. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#apps.values()].map((app) => app.abort('dropped')))
  }
}
