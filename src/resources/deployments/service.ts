import { eq } from 'drizzle-orm'
import { BerthError, notFound } from '../../errors.ts'
import { type AppPlan, GatewayError, type ReservedPort, summaryOf, workspaceTree } from '../../hosting/app.ts'
import type { AppEnvironment, HostedApp, Hosting } from '../../hosting/hosting.ts'
import { accountCaller, type Caller } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { Queries } from '../../storage/database.ts'
import { recoverChange, UnfinishedChanges } from '../apps/file-change.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import { appLog, finishedLog, type ReadableLog } from '../logs/readable-log.ts'
import { describedTree } from '../projects/app-directory.ts'
import { isInProject } from '../projects/inside.ts'
import { toCrash, toDetectedApp, toFailedChange, toWorkers } from '../projects/table.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type {
  Deployment,
  DeploymentPush,
  DeploymentPushResult,
  PublishedDeployment,
  RemovedDeployment,
} from './model.ts'
import { failureOf, OWNER, type PreparedApp, Publication, publishedDirectory } from './publication.ts'
import { DeploymentPushes, type PushedVersion } from './pushes.ts'
import { type DeploymentRow, deployments } from './table.ts'

/** Dependencies of the deployments. */
interface DeploymentsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  outbox: Outbox
  changes: Changes
  servers: ServersService
  secrets: SecretsService
  hosting: Hosting
}

/** What is published: the workspace as it is, an app that is prepared already, or the workspace with other files. */
interface PublicationSource {
  prepared?: PreparedApp
  version?: PushedVersion
  /** The app's own directory, relative to the workspace; by default the workspace itself. */
  directory?: string
}

/** Publishes the workspaces of servers: one deployment each, with a URL that stays. */
export class DeploymentsService implements ServerLifecycleListener {
  readonly #dependencies: DeploymentsDependencies & { unfinished: UnfinishedChanges }
  readonly #queries: Queries
  readonly #publishing = new KeyedMutex()
  /** Ports on which servers will publish first, by server. */
  readonly #reserved = new Map<string, ReservedPort>()
  readonly #inProgress = new Set<string>()
  readonly #pushes: DeploymentPushes

  constructor(dependencies: DeploymentsDependencies) {
    this.#dependencies = { ...dependencies, unfinished: new UnfinishedChanges(dependencies.queries) }
    this.#queries = dependencies.queries
    this.#pushes = new DeploymentPushes({
      ...this.#dependencies,
      isInProject: (serverId, path) => isInProject(this.#queries, serverId, path.split('/')),
      publish: ({ id, accountId }, version, directory) =>
        this.#publishNext(accountCaller(accountId), id, { version, directory }),
    })
    dependencies.secrets.onChange((serverId, projectId) => {
      if (projectId === '') this.#secretsChanged(serverId)
    })
  }

  /**
   * Returns the deployment of a server, if it has one.
   *
   * @throws BerthError 404
   */
  list(caller: Caller, serverId: string): Deployment[] {
    this.#dependencies.servers.getRow(caller, serverId)
    const { hosting } = this.#dependencies
    const row = this.#find(serverId)
    if (row === undefined) return []
    const app = hosting.find(serverId)
    const crash = app?.crash ?? null
    const live = this.#isLive(row)
    const failed = live ? (app?.failedChange ?? row.failedChange) : undefined
    return [
      {
        ...{ url: hosting.urlOf(row.port), live, app: toDetectedApp(row.plan), warnings: [...row.warnings] },
        workers: toWorkers(row.plan, app),
        ...(crash && { crash: toCrash(crash) }),
        ...(failed && { failed_change: toFailedChange(failed) }),
        ...(app?.isPortTaken && { port_taken: true }),
      },
    ]
  }

  /**
   * Ends what a server publishes, with its log. The workspace stays as it is; the next publication gets a new URL.
   *
   * @throws BerthError 404, also if the server publishes nothing
   */
  delete(caller: Caller, serverId: string): Promise<RemovedDeployment> {
    const { servers, hosting, outbox } = this.#dependencies
    servers.getRow(caller, serverId)
    return this.#publishing.run(serverId, async () => {
      const { accountId } = servers.getRow(caller, serverId)
      const row = this.#find(serverId)
      if (row === undefined) throw notFound(`A deployment of the server "${serverId}"`)
      const url = hosting.urlOf(row.port)
      this.#queries.transaction((tx) => {
        tx.delete(deployments).where(eq(deployments.serverId, serverId)).run()
        servers.records.setPublicUrl(serverId, null)
        outbox.emit(accountId, 'deployment.removed', { server_id: serverId, url })
        this.#notify(serverId, accountId)
      })
      await hosting.remove(serverId)
      return { url, deleted: true }
    })
  }

  /**
   * Publishes the workspace, or a directory of it: its app, else its files. The earlier one responds until it does.
   *
   * @throws BerthError 400 for a directory that is not there, 402 at the budget's end, 404, 502 with the end of the log
   */
  async publish(
    caller: Caller,
    serverId: string,
    { directory: given, ...source }: Omit<PublicationSource, 'version'>,
  ): Promise<PublishedDeployment> {
    const { servers } = this.#dependencies
    const tree = workspaceTree(servers.workspace(servers.getRow(caller, serverId)), '')
    const directory = await publishedDirectory(given, tree)
    return this.#publishNext(caller, serverId, { ...source, directory })
  }

  /**
   * Makes the files of a workspace what a manifest describes, and publishes it. If that fails, the files of the version
   * before are put back, and it goes on.
   *
   * @param archive the content of the files that the workspace lacks
   * @throws BerthError 400 for a path or an archive that is refused, and as `publish` does
   */
  async push(
    caller: Caller,
    serverId: string,
    pushed: DeploymentPush,
    archive: Uint8Array | null,
  ): Promise<DeploymentPushResult> {
    const { servers } = this.#dependencies
    const server = servers.getRow(caller, serverId)
    servers.checkBudget(server)
    const tree = describedTree(pushed, workspaceTree(servers.workspace(server), ''))
    const directory = await publishedDirectory(pushed.directory, tree)
    return this.#pushes.push(server, { ...pushed, directory }, archive)
  }

  /**
   * Settles the address at which a server will publish, so that a build knows it before.
   *
   * @returns the variable from which the app knows it; call `release` after the publication
   * @throws BerthError 503 if no port is free
   */
  reserveAddress(serverId: string): Promise<{ variable: { BERTH_URL: string }; release: () => void }> {
    const { hosting } = this.#dependencies
    return this.#publishing.run(serverId, async () => {
      const before = this.#find(serverId)
      if (before) return { variable: hosting.addressVariable(before.port), release() {} }
      const reserved = await hosting.reservePort().catch(refuseWithoutPort)
      this.#reserved.set(serverId, reserved)
      const release = (): void => {
        this.#reserved.delete(serverId)
        reserved.release()
      }
      return { variable: hosting.addressVariable(reserved.port), release }
    })
  }

  /** Publishes after the publications under way. */
  #publishNext(caller: Caller, serverId: string, source: PublicationSource): Promise<PublishedDeployment> {
    return this.#publishing.run(serverId, async () => {
      this.#inProgress.add(serverId)
      try {
        return await this.#publish(caller, serverId, source).catch(refuseWithoutPort)
      } finally {
        this.#inProgress.delete(serverId)
      }
    })
  }

  /** Returns the log of what a server publishes, or has last tried to publish. @throws BerthError 404 */
  openLog(caller: Caller, serverId: string): ReadableLog {
    const { servers, clock } = this.#dependencies
    servers.getRow(caller, serverId)
    return {
      clock,
      select: (selection) => this.#withLog(serverId, (log) => log.select(selection)),
      follow: (selection, signal, send) =>
        this.#withLog(serverId, (log) => log.follow(selection, signal, send)),
    }
  }

  /** Uses the log of what a server publishes. If it publishes nothing, no lines follow. */
  async #withLog<Result>(serverId: string, use: (log: ReadableLog) => Promise<Result>): Promise<Result> {
    const { hosting, clock } = this.#dependencies
    const row = this.#find(serverId)
    const app = hosting.find(serverId) ?? (row && (await this.#app(serverId, row.port)))
    if (app !== undefined) return use(appLog(app.log, clock))
    const log = await hosting.openLog(serverId)
    try {
      return await use(finishedLog(log, clock))
    } finally {
      await log.close()
    }
  }

  /** Ignores changes of a deployment's files until the returned function is called, once. */
  async pauseWatch(serverId: string): Promise<() => Promise<void>> {
    const app = this.#dependencies.hosting.find(serverId)
    return app === undefined ? async () => {} : app.pauseWatch()
  }

  /**
   * Recovers the pushes that an earlier berth did not finish, before anything of their servers starts. A version that has to
   * be built again stays noted.
   */
  async recover(): Promise<void> {
    const { unfinished } = this.#dependencies
    for (const noted of unfinished.list('deployments')) {
      const { serverId, change } = noted
      const row = this.#find(serverId)
      if (change.state !== 'rebuild') {
        const { text } = await recoverChange(this.#dependencies, noted, 'deploy')
        if (row !== undefined) this.#setFailedChange(serverId, text)
      }
      const isBuilt = row !== undefined && (row.plan.install !== null || row.plan.build !== null)
      if (change.state !== 'next' && change.isBuiltOver && isBuilt)
        unfinished.put(serverId, serverId, { ...change, state: 'rebuild' })
      else unfinished.drop(serverId)
    }
  }

  /** Opens the sites of all deployments. Requests wait there until the deployment responds again. */
  async open(): Promise<void> {
    const rows = this.#queries.select().from(deployments).all()
    // No deployment runs yet, even if a killed berth has recorded one as running.
    for (const { serverId } of rows) this.#dependencies.servers.records.setPublicUrl(serverId, null)
    await Promise.all(rows.map(async (row) => (await this.#app(row.serverId, row.port)).expose()))
  }

  /** Starts the server's deployment again. */
  serverStarted(serverId: string): void {
    const row = this.#find(serverId)
    // A publication that is in progress starts the app itself.
    if (!row || this.#inProgress.has(serverId)) return
    this.#runInBackground(serverId, async () => {
      const app = await this.#app(serverId, row.port)
      await app.expose()
      const environment = this.#environment(app)
      await this.#rebuildRecovered(app, row.plan, environment)
      await app.start(row.plan, environment)
    })
  }

  /**
   * Installs and builds a version whose files were put back at the start of berth, if that is to be done still.
   *
   * @throws AppError
   */
  async #rebuildRecovered(app: HostedApp, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    const { servers, hosting, unfinished } = this.#dependencies
    const { serverId } = app
    const server = servers.records.find(serverId)
    const sandbox = servers.lifecycle.sandbox(serverId)
    if (unfinished.find(serverId)?.state !== 'rebuild' || !server || !sandbox) return
    const publication = new Publication({
      ...{ app, preparation: hosting.preparation, sandbox, directory: '' },
      workspace: servers.workspace(server),
      signal: hosting.stopSignal(serverId),
      environment: () => environment,
    })
    await publication.make(plan)
    unfinished.drop(serverId)
  }

  /** Restarts a server's deployment with its new variables. */
  #secretsChanged(serverId: string): void {
    const app = this.#dependencies.hosting.find(serverId)
    if (app) this.#runInBackground(serverId, () => app.restart(this.#environment(app)))
  }

  /** Returns an app's variables. @param plan whose secrets are made that only have to be secret */
  #environment(app: HostedApp, plan?: AppPlan): AppEnvironment {
    const { secrets, hosting } = this.#dependencies
    if (plan) secrets.generate(app.serverId, '', plan, secrets.environment(app.serverId))
    const environment = secrets.environment(app.serverId)
    app.maskValues(environment)
    return { ...hosting.addressVariable(app.port), ...environment }
  }

  /** Runs background work and logs its failure. */
  #runInBackground(serverId: string, work: () => Promise<void>): void {
    const { logger } = this.#dependencies
    work().catch((error) => logger.warn('what a server publishes did not come up', { serverId, error }))
  }

  async #publish(
    caller: Caller,
    serverId: string,
    { prepared, version, directory = '' }: PublicationSource,
  ): Promise<PublishedDeployment> {
    const { servers, hosting } = this.#dependencies
    prepared?.signal.throwIfAborted()
    const { row: server, sandbox, done } = await servers.use(caller, serverId)
    let reserved: ReservedPort | null = null
    try {
      const before = this.#find(serverId)
      const known = before ?? this.#reserved.get(serverId)
      reserved = known ? { port: known.port, release() {} } : await hosting.reservePort()
      const { port } = reserved
      const app = await this.#app(serverId, port)
      const signal = hosting.stopSignal(serverId)
      const publication = new Publication({
        ...{ app, preparation: hosting.preparation, sandbox, directory, signal, version },
        workspace: servers.workspace(server),
        environment: (plan) => this.#environment(app, plan),
      })
      const resume = version === undefined ? async () => {} : await app.pauseWatch()
      try {
        const plan = await publication.bringUp(before, prepared?.plan)
        return this.#live(server, port, plan, await app.findWarnings(signal))
      } catch (error) {
        const failure = await failureOf(error, app)
        this.#noteFailedUpdate(server, error)
        if (!before) {
          await hosting.drop(serverId)
          throw failure
        }
        if (version === undefined) throw failure
        const outcome = await publication.restore(before, version)
        throw failure instanceof BerthError && failure.code === 'compute_backend_error'
          ? new BerthError(failure.code, `${failure.message}\n${outcome}`)
          : failure
      } finally {
        await resume()
      }
    } finally {
      reserved?.release()
      done()
      servers.meter.changed(server)
    }
  }

  /** Notes why a publication failed, for the deployment that goes on. */
  #noteFailedUpdate({ id, accountId }: ServerRow, error: unknown): void {
    if (this.#find(id) === undefined) return
    this.#setFailedChange(id, summaryOf(error))
    this.#notify(id, accountId)
  }

  #setFailedChange(serverId: string, reason: string): void {
    const failedChange = { reason, at: this.#dependencies.clock.now() }
    this.#queries.update(deployments).set({ failedChange }).where(eq(deployments.serverId, serverId)).run()
  }

  #live(server: ServerRow, port: number, plan: AppPlan, warnings: string[]): PublishedDeployment {
    const { ids, clock, outbox, servers, hosting, unfinished } = this.#dependencies
    const url = hosting.urlOf(port)
    this.#queries.transaction((tx) => {
      unfinished.drop(server.id)
      const values = {
        id: ids.next('dep'),
        serverId: server.id,
        port,
        plan,
        warnings,
        createdAt: clock.now(),
      }
      tx.insert(deployments)
        .values(values)
        .onConflictDoUpdate({
          target: deployments.serverId,
          set: { plan, warnings, createdAt: values.createdAt, failedChange: null },
        })
        .run()
      servers.records.setPublicUrl(server.id, url)
      outbox.emit(server.accountId, 'deployment.live', { server_id: server.id, url })
      this.#notify(server.id, server.accountId)
    })
    return { url, status: 'live', app: toDetectedApp(plan), warnings }
  }

  #app(serverId: string, port: number): Promise<HostedApp> {
    const { servers, hosting } = this.#dependencies
    return hosting.app({
      owner: OWNER,
      id: serverId,
      serverId,
      directory: '',
      port,
      slug: null,
      hasRun: this.#find(serverId) !== undefined,
      isHidden: (names) => isInProject(this.#queries, serverId, names),
      onChange: (change) => {
        if (this.#find(serverId) === undefined) return
        if (change === 'up' || change === 'down')
          servers.records.setPublicUrl(serverId, change === 'up' ? hosting.urlOf(port) : null)
        this.#notify(serverId, servers.records.find(serverId)?.accountId)
      },
    })
  }

  #notify(serverId: string, accountId: string | undefined): void {
    if (accountId !== undefined)
      this.#dependencies.changes.notify('deployment', serverId, accountId, serverId)
  }

  #isLive({ serverId }: DeploymentRow): boolean {
    const { hosting, servers } = this.#dependencies
    return servers.lifecycle.sandbox(serverId) !== undefined && (hosting.find(serverId)?.isUp ?? false)
  }

  #find(serverId: string): DeploymentRow | undefined {
    return this.#queries.select().from(deployments).where(eq(deployments.serverId, serverId)).get()
  }
}

/** Reports that no port is free as the API does. */
function refuseWithoutPort(error: unknown): never {
  if (error instanceof GatewayError) throw new BerthError('service_unavailable', error.message)
  throw error
}
