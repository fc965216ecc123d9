import { notFound } from '../../errors.ts'
import { missingVariables } from '../../hosting/app-runtime/plan.ts'
import type { HostedApp } from '../../hosting/hosted-app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { BringUp } from './bring-up.ts'
import type { ProjectCode } from './code.ts'
import type { InitPhase } from './model.ts'
import type { ProjectRecords } from './records.ts'
import { folderOf, type ProjectRow } from './table.ts'

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

/** Phases in which a bring-up is over, or waits for its caller. */
const AT_REST: ReadonlySet<InitPhase | null> = new Set([null, 'awaiting_secrets', 'ready', 'failed'])

const isStarting = ({ initPhase }: ProjectRow): boolean =>
  initPhase === 'start' || initPhase === 'healthcheck'

/** How a bring-up is asked for. */
interface InitWishes {
  /** Whether to continue without the missing variables. */
  proceed: boolean
  /** The first phase of a new bring-up. */
  from: 'fetch' | 'install'
}

/** The apps of projects: brought up, kept alive with their servers, and taken down. */
export class ProjectApps implements ServerLifecycleListener {
  readonly #dependencies: ProjectAppsDependencies
  readonly #records: ProjectRecords
  readonly #bringUp: BringUp
  /** Projects that are being removed: nothing of them starts any more. */
  readonly #ending = new Set<string>()
  /** Projects whose upload is being unpacked. */
  readonly #arriving = new Map<string, { abort: AbortController; done: Promise<void> }>()
  #stopping = false

  constructor(dependencies: ProjectAppsDependencies) {
    this.#dependencies = dependencies
    this.#records = dependencies.records
    const { hosting } = dependencies
    this.#bringUp = new BringUp({
      ...dependencies,
      preparation: hosting.preparation,
      appOf: (row) => this.app(row),
      urlOf: (row) => (row.visibility === 'public' ? this.urlOf(row) : null),
    })
    dependencies.secrets.onChange((serverId, projectId) => this.#secretsChanged(serverId, projectId))
  }

  /** Returns the URL of a project while it is public. */
  urlOf({ port }: ProjectRow): string {
    return this.#dependencies.hosting.urlOf(port)
  }

  /** The app of a project. */
  app({ id, serverId, slug, port, runtimeStatus }: ProjectRow): Promise<HostedApp> {
    return this.#dependencies.hosting.app({
      id,
      serverId,
      folder: folderOf({ slug }),
      port,
      slug,
      hasRun: runtimeStatus !== 'unbuilt',
      onRunning: (running) => this.#records.setRuntimeStatus(id, running ? 'running' : 'paused'),
    })
  }

  /**
   * Unpacks the upload of a new project. Until that ends, nothing of the project starts; deleting the project aborts
   * it.
   *
   * @throws BerthError 404 if the project was deleted meanwhile; whatever `unpack` throws
   */
  async arrives({ id }: ProjectRow, unpack: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const abort = new AbortController()
    const done = unpack(abort.signal)
    this.#arriving.set(id, { abort, done })
    try {
      await done
      abort.signal.throwIfAborted()
    } finally {
      this.#arriving.delete(id)
    }
  }

  /**
   * Exposes a new project and begins its bring-up, if it has code.
   *
   * @param fetched whether its code is there already
   */
  async added(row: ProjectRow, fetched: boolean): Promise<void> {
    await this.exposed(row)
    if (row.initPhase === null) return
    if (fetched) this.#records.enters(row.id, 'install')
    this.#go(row.id)
  }

  /** Opens or closes the project's site according to its visibility. */
  async exposed(row: ProjectRow): Promise<void> {
    const app = await this.app(row)
    await (row.visibility === 'public' ? app.expose() : app.conceal())
    // The project may have been deleted with its server meanwhile.
    if (!this.#records.find(row.id)) await this.forget(row)
  }

  /** Continues a bring-up, or begins a new one if the last has ended. */
  init(row: ProjectRow, { proceed, from }: InitWishes): void {
    const { ids } = this.#dependencies
    if (row.initPhase === null || row.initPhase === 'ready' || row.initPhase === 'failed') {
      this.#records.begins(row.id, ids.next('irun'), from, proceed)
    } else if (proceed) {
      this.#records.proceeds(row.id)
    }
    this.#go(row.id)
  }

  /** Resolves when no bring-up of the project is under way any more. */
  settled(id: string): Promise<void> {
    return this.#bringUp.ended(id)
  }

  /** Gives up a bring-up and ends the app; resolves when neither runs. */
  async ended(id: string): Promise<void> {
    this.#ending.add(id)
    const arriving = this.#arriving.get(id)
    arriving?.abort.abort(notFound(`The project "${id}"`))
    await arriving?.done.catch(() => {})
    await this.#bringUp.abort(id, 'dropped')
    await this.#dependencies.hosting.find(id)?.stop('The project is being removed.')
  }

  /** Removes what belongs to a project beside its files and its record. */
  async forget({ id }: ProjectRow): Promise<void> {
    await this.#dependencies.hosting.forget(id)
    this.#ending.delete(id)
  }

  /** Opens the sites of all projects: callers wait there until the apps run again. */
  async open(): Promise<void> {
    await Promise.all(this.#records.listAll().map((row) => this.exposed(row)))
  }

  /** Takes up the bring-ups that an earlier berth was in the middle of. */
  resume(): void {
    for (const { id, initPhase } of this.#records.listAll()) if (!AT_REST.has(initPhase)) this.#go(id)
  }

  /** Starts the apps of the server's projects. */
  serverStarted(serverId: string): void {
    for (const { id } of this.#records.listByServer(serverId)) {
      if (!this.#bringUp.isUnderWay(id)) void this.#comesBack(id)
    }
  }

  /**
   * Continues after the start of a project's server: interrupted bring-ups continue, and apps that ran start again.
   */
  async #comesBack(id: string): Promise<void> {
    // One that was given up with the server may not have come to its end yet.
    await this.#bringUp.ended(id)
    const row = this.#records.find(id)
    if (row === undefined) return
    if (!AT_REST.has(row.initPhase)) this.#go(id)
    else if (row.runtimeStatus !== 'unbuilt') await this.#resumeApp(row)
  }

  /** Fails the bring-ups on the server. */
  serverStopping(serverId: string): void {
    for (const { id } of this.#records.listByServer(serverId)) {
      void this.#bringUp.abort(id, 'server stopped')
      this.#records.setRuntimeStatus(id, 'paused')
    }
  }

  /** Gives up the bring-ups on the server, whose projects go with it, without an event. */
  serverDeleting(server: ServerRow): void {
    for (const { id } of this.#records.listByServer(server.id)) void this.#bringUp.abort(id, 'dropped')
  }

  /** Stops the bring-ups where they are. The next start continues them. */
  async stop(): Promise<void> {
    this.#stopping = true
    await this.#bringUp.stop()
  }

  #go(id: string): void {
    if (!this.#stopping && !this.#ending.has(id) && !this.#arriving.has(id)) this.#bringUp.go(id)
  }

  /** Starts an app again in the form of its last bring-up. */
  async #resumeApp(row: ProjectRow): Promise<void> {
    const { secrets, logger } = this.#dependencies
    if (row.plan === null) return
    try {
      const environment = secrets.environment(row.serverId, row.id)
      const app = await this.app(row)
      app.hide(environment)
      await app.start(row.plan, environment)
    } catch (error) {
      logger.warn('the app of a project did not start again', { projectId: row.id, error })
    }
  }

  #secretsChanged(serverId: string, projectId: string): void {
    const rows = projectId === '' ? this.#records.listByServer(serverId) : [this.#records.find(projectId)]
    for (const row of rows) {
      if (row === undefined) continue
      this.#renew(row).catch((error) =>
        this.#dependencies.logger.warn('an app did not start with its new variables', {
          projectId: row.id,
          error,
        }),
      )
    }
  }

  /** The variables of a project are others now. */
  async #renew(row: ProjectRow): Promise<void> {
    const environment = this.#dependencies.secrets.environment(row.serverId, row.id)
    const app = await this.app(row)
    app.hide(environment)
    // A start that is under way sees to it itself.
    if (this.#bringUp.isUnderWay(row.id) && isStarting(row)) return
    if (row.initPhase !== 'awaiting_secrets') return app.restart(environment)
    const given = new Set(Object.keys(environment))
    if (row.plan && missingVariables(row.plan, given).length === 0) this.#go(row.id)
  }
}
