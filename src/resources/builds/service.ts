import { BerthError, notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { SendEvent } from '../../http/sse.ts'
import type { LogLines } from '../projects/model.ts'
import type { ServersService } from '../servers/service.ts'
import type { BuildLogs } from './logs.ts'
import type { Build, CreatedBuild } from './model.ts'
import type { BuildQueue } from './queue.ts'
import type { BuildRecords } from './records.ts'
import { type BuildRow, toBuild, toSteps } from './table.ts'

/** Lines of a log that are given where nobody says how many. */
const DEFAULT_TAIL = 200

/** What the builds need. */
interface BuildsDependencies {
  records: BuildRecords
  queue: BuildQueue
  logs: BuildLogs
  servers: ServersService
}

/** Builds as callers see them. */
export class BuildsService {
  readonly #records: BuildRecords
  readonly #queue: BuildQueue
  readonly #logs: BuildLogs
  readonly #servers: ServersService
  #stopped = false

  constructor({ records, queue, logs, servers }: BuildsDependencies) {
    this.#records = records
    this.#queue = queue
    this.#logs = logs
    this.#servers = servers
  }

  /** Those of a server, newest first. @throws BerthError 404 */
  list(caller: Caller, serverId: string): Build[] {
    this.#servers.row(caller, serverId)
    return this.#records.ofServer(serverId).map(toBuild)
  }

  /** One. @throws BerthError 404 */
  get(caller: Caller, serverId: string, id: string): Build {
    return toBuild(this.row(caller, serverId, id))
  }

  /** The record of one. @throws BerthError 404 */
  row(caller: Caller, serverId: string, id: string): BuildRow {
    this.#servers.row(caller, serverId)
    const row = this.#records.find(id)
    if (row?.serverId !== serverId) throw notFound(`The build "${id}"`)
    return row
  }

  /**
   * Builds an app for a goal, when the builds before it on the server are over. A server that sleeps is woken first;
   * where it does not wake, there is no build and no charge.
   *
   * @throws BerthError 402 where the budget is used up, 404, 502
   */
  async create(caller: Caller, serverId: string, goal: string): Promise<CreatedBuild> {
    this.#servers.checkBudget(this.#servers.row(caller, serverId))
    if (this.#stopped) throw new BerthError('service_unavailable', 'berth is being stopped.')
    const { done } = await this.#servers.use(caller, serverId)
    try {
      // Both may have changed while it woke.
      const server = this.#servers.row(caller, serverId)
      this.#servers.checkBudget(server)
      const waiting = this.#records.unfinished(serverId).length
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
    return [...(await this.#logs.tail(this.row(caller, serverId, id), tail))]
  }

  /** Sends the last lines of a build's log as `line` events, and each that comes, until it is over or the caller has gone. */
  follow(id: string, tail = DEFAULT_TAIL, gone: AbortSignal, send: SendEvent): Promise<void> {
    const row = this.#records.find(id)
    return row === undefined ? Promise.resolve() : this.#logs.follow(row, tail, gone, send)
  }

  /** Takes no more. */
  stop(): void {
    this.#stopped = true
  }
}
