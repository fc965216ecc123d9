import { BerthError, notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { SendEvent } from '../../http/sse.ts'
import type { Lifecycle } from '../../runtime/service.ts'
import { isInProject } from '../projects/inside.ts'
import type { LogLines } from '../projects/model.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import { BuildLogs } from './logs.ts'
import type { Build, CreatedBuild } from './model.ts'
import { existing } from './pipeline.ts'
import { BuildQueue, type QueueDependencies } from './queue.ts'
import { BuildRecords, type RecordsDependencies } from './records.ts'
import { type BuildRow, toBuild, toSteps } from './table.ts'

/** Default number of log lines. */
const DEFAULT_TAIL = 200

/** How long a stop of berth waits for builds that it has ended. */
const STOP_PATIENCE_MS = 1_000

/** Dependencies of the builds. */
interface BuildsDependencies
  extends RecordsDependencies,
    Omit<QueueDependencies, 'records' | 'logs' | 'servers' | 'isInProject'> {
  servers: ServersService
  /** Absolute path of the directory of all builds' logs. */
  logDirectory: string
}

/** Builds as callers see them. */
export class BuildsService implements Lifecycle, ServerLifecycleListener {
  readonly #dependencies: BuildsDependencies
  readonly #records: BuildRecords
  readonly #queue: BuildQueue
  readonly #logs: BuildLogs
  readonly #servers: ServersService
  #stopped = false

  constructor(dependencies: BuildsDependencies) {
    const { clock, logger, logDirectory, queries, servers } = dependencies
    this.#dependencies = dependencies
    this.#records = new BuildRecords(dependencies)
    this.#logs = new BuildLogs({ clock, logger, folder: logDirectory })
    this.#queue = new BuildQueue({
      ...dependencies,
      records: this.#records,
      logs: this.#logs,
      isInProject: (serverId, path) => isInProject(queries, serverId, path.split('/')),
    })
    this.#servers = servers
  }

  /** Ends the builds that ran when berth was killed, and removes the logs of deleted servers. */
  async recover(): Promise<void> {
    for (const row of this.#records.listUnfinished()) {
      if (row.status !== 'running') continue
      const workspace = this.#servers.findWorkspace(row.serverId)
      const artifacts = workspace ? await existing({ workspace }, row.artifacts) : row.artifacts
      this.#logs.conclude(row, 'berth ended unexpectedly while the build ran.')
      await this.#logs.finish(row)
      this.#records.ends(row, null, { artifacts })
    }
    await this.#logs.sweep((serverId) => this.#servers.find(serverId) !== undefined)
  }

  /** Continues with the waiting builds, after the servers have started. */
  start(): void {
    const servers = new Set(this.#records.listUnfinished().map(({ serverId }) => serverId))
    for (const serverId of servers) this.#queue.go(serverId)
  }

  /** Accepts no more builds and ends the running ones. Waiting builds continue at the next start. */
  stop(): void {
    this.#stopped = true
    for (const row of this.#records.listUnfinished()) {
      if (row.status !== 'running') continue
      this.#records.ends(row, null)
      this.#logs.conclude(row, 'berth was stopped while the build ran.')
    }
    this.#queue.stop()
  }

  /** Waits until nothing of builds runs any more, and writes their logs. The servers have stopped. */
  async close(): Promise<void> {
    await Promise.race([this.#queue.settled(), Bun.sleep(STOP_PATIENCE_MS)])
    await this.#logs.finishAll()
  }

  /** Ends the builds that run or wait on the server. If berth stops, waiting builds stay for the next start. */
  serverStopping(serverId: string): void {
    if (this.#stopped) return
    try {
      this.#endAll(serverId)
    } catch (error) {
      // The server stops all the same.
      this.#dependencies.logger.error('the end of builds could not be written', { serverId, error })
    }
    this.#queue.abort(serverId)
  }

  /** Removes the logs of the server's builds. A build that still ends, and may wait for the server, is not waited for. */
  serverDeleted(serverId: string): Promise<void> {
    return this.#logs.remove(serverId)
  }

  /**
   * Returns the builds of a server, newest first.
   *
   * @throws BerthError 404
   */
  list(caller: Caller, serverId: string): Build[] {
    this.#servers.getRow(caller, serverId)
    return this.#records.listByServer(serverId).map(toBuild)
  }

  /** One. @throws BerthError 404 */
  get(caller: Caller, serverId: string, id: string): Build {
    return toBuild(this.getRow(caller, serverId, id))
  }

  /** The record of one. @throws BerthError 404 */
  getRow(caller: Caller, serverId: string, id: string): BuildRow {
    this.#servers.getRow(caller, serverId)
    const row = this.#records.find(id)
    if (row?.serverId !== serverId) throw notFound(`The build "${id}"`)
    return row
  }

  /**
   * Builds an app for a goal, after the earlier builds on the server. A sleeping server is started first; if that
   * fails, no build is created or charged.
   *
   * @throws BerthError 402 if the budget is used up, 404, 502
   */
  async create(caller: Caller, serverId: string, goal: string): Promise<CreatedBuild> {
    this.#servers.checkBudget(this.#servers.getRow(caller, serverId))
    if (this.#stopped) throw new BerthError('service_unavailable', 'berth is being stopped.')
    const { done } = await this.#servers.use(caller, serverId)
    try {
      // Both may have changed while it woke.
      const server = this.#servers.getRow(caller, serverId)
      this.#servers.checkBudget(server)
      const waiting = this.#records.listUnfinished(serverId).length
      const row = this.#records.add(server.accountId, serverId, goal)
      if (waiting > 0)
        this.#logs.note(row, `Waits for ${waiting === 1 ? 'the build' : `${waiting} builds`} before it.`)
      this.#queue.add(row)
      return { build_id: row.id, status: row.status, steps: toSteps(row.steps) }
    } finally {
      done()
    }
  }

  /** The last lines of a build's log, oldest first. @throws BerthError 404 */
  async logs(caller: Caller, serverId: string, id: string, tail = DEFAULT_TAIL): Promise<LogLines> {
    return [...(await this.#logs.tail(this.getRow(caller, serverId, id), tail))]
  }

  /**
   * Sends the last lines of a build's log as `line` events and then new ones, until the build has ended or the caller
   * disconnects.
   */
  follow(id: string, tail = DEFAULT_TAIL, gone: AbortSignal, send: SendEvent): Promise<void> {
    const row = this.#records.find(id)
    return row === undefined ? Promise.resolve() : this.#logs.follow(row, tail, gone, send)
  }

  #endAll(serverId: string): void {
    const left = this.#records.listUnfinished(serverId)
    const reason = left.length === 0 ? '' : this.#reasonOf(serverId)
    for (const row of left) {
      this.#records.ends(row, null)
      const phase = row.status === 'running' ? 'while the build ran' : 'while the build waited for its turn'
      this.#logs.conclude(row, `${reason} ${phase}.`)
      if (row.status === 'queued') void this.#logs.finish(row)
    }
  }

  #reasonOf(serverId: string): string {
    const row = this.#servers.find(serverId)
    if (row !== undefined && this.#dependencies.metering.isCapped(row.accountId)) {
      return 'The budget of the account was used up, and its servers were put to sleep,'
    }
    if (this.#servers.sandbox(serverId) === undefined)
      return 'The server ended by itself, or did not come up again,'
    return 'The server was stopped'
  }
}
