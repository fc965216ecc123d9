import { BerthError, notFound } from '../../errors.ts'
import { type Caller, mayReachServer } from '../../http/caller.ts'
import type { Recorder } from '../../runtime/recorder.ts'
import type { Lifecycle } from '../../runtime/service.ts'
import { type Database, ReadCache } from '../../storage/database.ts'
import type { ReadableLog } from '../logs/readable-log.ts'
import { isInProject } from '../projects/inside.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import { BuildLogs } from './logs.ts'
import type { Build, CreatedBuild } from './model.ts'
import { filterExisting } from './pipeline.ts'
import { BuildQueue, type QueueDependencies } from './queue.ts'
import { BuildRecords, type RecordsDependencies } from './records.ts'
import { type BuildRow, toBuild, toSteps } from './table.ts'

/** Milliseconds that `close` waits for builds. */
const STOP_TIMEOUT_MS = 1_000

/** Dependencies of the builds. */
interface BuildsDependencies
  extends RecordsDependencies,
    Omit<QueueDependencies, 'records' | 'logs' | 'servers' | 'isInProject'> {
  servers: ServersService
  database: Pick<Database, 'version'>
  /** Absolute path of the directory of all builds' logs. */
  logDirectory: string
  /** Takes the lines of logs; null if nothing is recorded. */
  recorder: Recorder | null
}

/** Builds as callers see them. */
export class BuildsService implements Lifecycle, ServerLifecycleListener {
  readonly #dependencies: BuildsDependencies
  readonly #records: BuildRecords
  readonly #queue: BuildQueue
  readonly #logs: BuildLogs
  readonly #servers: ServersService
  /** The lists of servers and of accounts, by their ids. */
  readonly #lists: ReadCache<Build[]>
  #stopped = false

  constructor(dependencies: BuildsDependencies) {
    const { clock, database, logger, logDirectory, queries, recorder, servers } = dependencies
    this.#dependencies = dependencies
    this.#records = new BuildRecords(dependencies)
    this.#logs = new BuildLogs({ clock, logger, directory: logDirectory, recorder })
    this.#queue = new BuildQueue({
      ...dependencies,
      records: this.#records,
      logs: this.#logs,
      isInProject: (serverId, path) => isInProject(queries, serverId, path.split('/')),
    })
    this.#servers = servers
    this.#lists = new ReadCache(database.version)
  }

  /** Ends the builds that ran when berth was killed, and removes the logs of deleted servers. */
  async recover(): Promise<void> {
    for (const row of this.#records.listUnfinished()) {
      if (row.status !== 'running') continue
      const server = this.#servers.records.find(row.serverId)
      const artifacts = server
        ? await filterExisting({ workspace: this.#servers.workspace(server) }, row.artifacts)
        : row.artifacts
      this.#logs.appendLast(row, 'berth ended unexpectedly while the build ran.')
      await this.#logs.close(row)
      this.#records.markCompleted(row, null, { artifacts })
    }
    await this.#logs.removeOrphans((serverId) => this.#servers.records.find(serverId) !== undefined)
  }

  /** Continues with the waiting builds, after the servers have started. */
  start(): void {
    const servers = new Set(this.#records.listUnfinished().map(({ serverId }) => serverId))
    for (const serverId of servers) this.#queue.startNext(serverId)
  }

  /** Accepts no more builds and ends the running ones. Waiting builds continue at the next start. */
  stop(): void {
    this.#stopped = true
    for (const row of this.#records.listUnfinished()) {
      if (row.status !== 'running') continue
      this.#records.markCompleted(row, null)
      this.#logs.appendLast(row, 'berth was stopped while the build ran.')
    }
    this.#queue.stop()
  }

  /** Waits for builds to end and closes their logs. The servers must have stopped. */
  async close(): Promise<void> {
    await Promise.race([this.#queue.drain(), Bun.sleep(STOP_TIMEOUT_MS)])
    await this.#logs.closeAll()
  }

  /** Ends the builds that run or wait on the server. If berth stops, waiting builds stay for the next start. */
  serverStopping(serverId: string): void {
    if (this.#stopped) return
    try {
      this.#endOnServer(serverId)
    } catch (error) {
      // The server must stop even so.
      this.#dependencies.logger.error('the end of builds could not be written', { serverId, error })
    }
    this.#queue.abort(serverId)
  }

  /** Removes the logs of the server's builds. Does not wait for a build that is ending: it may wait for the server. */
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
    return this.#lists.get(serverId, () => this.#records.listByServer(serverId).map(toBuild))
  }

  /** Lists the builds of all servers that the caller may access, newest first. */
  listAll(caller: Caller): Build[] {
    const { accountId } = caller
    const all = this.#lists.get(accountId, () => this.#records.listByAccount(accountId).map(toBuild))
    return caller.servers === null ? all : all.filter(({ serverId }) => mayReachServer(caller, serverId))
  }

  /** Returns a build. @throws BerthError 404 */
  get(caller: Caller, serverId: string, id: string): Build {
    return toBuild(this.getRow(caller, serverId, id))
  }

  /** Returns the record of a build. @throws BerthError 404 */
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
        this.#logs.append(row, `Waits for ${waiting === 1 ? 'the build' : `${waiting} builds`} before it.`)
      this.#queue.add(row)
      return { build_id: row.id, status: row.status, steps: toSteps(row.steps) }
    } finally {
      done()
    }
  }

  /** Returns the log of a build. No lines follow after its end. @throws BerthError 404 */
  openLog(caller: Caller, serverId: string, id: string): ReadableLog {
    const row = this.getRow(caller, serverId, id)
    return {
      clock: this.#dependencies.clock,
      select: (selection) => this.#logs.select(row, selection),
      follow: (selection, signal, send) => this.#logs.follow(row, selection, signal, send),
    }
  }

  #endOnServer(serverId: string): void {
    const left = this.#records.listUnfinished(serverId)
    const reason = left.length === 0 ? '' : this.#reasonOf(serverId)
    for (const row of left) {
      this.#records.markCompleted(row, null)
      const phase = row.status === 'running' ? 'while the build ran' : 'while the build waited for its turn'
      this.#logs.appendLast(row, `${reason} ${phase}.`)
      if (row.status === 'queued') void this.#logs.close(row)
    }
  }

  #reasonOf(serverId: string): string {
    const row = this.#servers.records.find(serverId)
    if (row !== undefined && this.#dependencies.metering.isCapped(row.accountId)) {
      return 'The budget of the account was used up, and its servers were put to sleep,'
    }
    if (this.#servers.lifecycle.sandbox(serverId) === undefined)
      return 'The server ended by itself, or did not come up again,'
    return 'The server was stopped'
  }
}
