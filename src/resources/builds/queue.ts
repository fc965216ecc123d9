import { AsyncLocalStorage } from 'node:async_hooks'
import { accountCaller } from '../../http/caller.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PROJECT_DEPTH } from '../projects/inside.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import { type BuildLogs, LOGS_KEPT } from './logs.ts'
import { type Built, Pipeline, type PipelineDependencies } from './pipeline.ts'
import type { BuildRecords, Progress } from './records.ts'
import type { BuildRow } from './table.ts'
import type { Work } from './work.ts'

/** Characters of a goal that a log begins with. */
const SHOWN_GOAL = 200

/** How long, in physical time, an end waits that could not be written, until that is tried again. */
const RETRY_MS = 500

/** Dependencies of the queue. */
export interface QueueDependencies extends PipelineDependencies {
  records: BuildRecords
  servers: ServersService
  secrets: SecretsService
  logs: BuildLogs
  logger: Logger
  /** Whether a path of a server's workspace lies in the folder of a project. */
  isInProject: (serverId: string, path: string) => boolean
}

/** Does work as if where a build was queued. */
type Origin = ReturnType<typeof AsyncLocalStorage.snapshot>

/** Runs builds: one at a time on each server, in the order of their creation. */
export class BuildQueue {
  readonly #dependencies: QueueDependencies
  readonly #runs = new Map<string, { abort: AbortController; done: Promise<void> }>()
  /** Brings back what was so in the work that a build was queued in: it runs in the turn of another. */
  readonly #origins = new Map<string, Map<string, Origin>>()
  #stopped = false

  constructor(dependencies: QueueDependencies) {
    this.#dependencies = dependencies
  }

  /** Adds a new build, and begins it if its server runs no other. */
  add({ id, serverId }: BuildRow): void {
    const origins = this.#origins.get(serverId) ?? new Map<string, Origin>()
    this.#origins.set(serverId, origins.set(id, AsyncLocalStorage.snapshot()))
    this.go(serverId)
  }

  /** Begins the next waiting build of a server, if none runs. */
  go(serverId: string): void {
    if (this.#stopped || this.#runs.has(serverId)) return
    const next = this.#dependencies.records.listUnfinished(serverId).find(({ status }) => status === 'queued')
    const origins = this.#origins.get(serverId)
    if (next === undefined) {
      this.#origins.delete(serverId)
      return
    }
    const abort = new AbortController()
    const inOrigin = origins?.get(next.id) ?? ((work: () => Promise<void>) => work())
    const run = inOrigin(() => this.#run(next, abort.signal)).finally(() => this.#runs.delete(serverId))
    origins?.delete(next.id)
    const done = run.then(
      () => this.go(serverId),
      // Where its end could not be written, as on a full disk, to go on at once would only fail again.
      (error) =>
        this.#dependencies.logger.error('a build could not be followed to its end', {
          buildId: next.id,
          error,
        }),
    )
    this.#runs.set(serverId, { abort, done })
  }

  /** Aborts the builds of a server. The caller updates their records. */
  abort(serverId: string): void {
    this.#origins.delete(serverId)
    this.#runs.get(serverId)?.abort.abort(new DOMException('The build was ended.', 'AbortError'))
  }

  /** Begins no more builds and aborts the running ones. */
  stop(): void {
    this.#stopped = true
    for (const serverId of this.#runs.keys()) this.abort(serverId)
  }

  /** Resolves when nothing runs any more. */
  async settled(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ done }) => done))
  }

  async #run(row: BuildRow, signal: AbortSignal): Promise<void> {
    const { records, servers, logs, logger } = this.#dependencies
    let done = () => {}
    try {
      const used = await servers.use(accountCaller(row.accountId), row.serverId, signal)
      done = used.done
      if (signal.aborted || !records.begins(row)) return
      const { url, artifacts } = await this.#build(row, used, signal)
      await this.#flush(row)
      await this.#end(row, signal, url, { artifacts })
    } catch (error) {
      // Whoever ended it has written why.
      if (signal.aborted) return
      const reason = messageOf(error)
      logs.note(row, `The build could not be done: ${reason}`)
      logger.warn('a build could not be done', { buildId: row.id, error })
      await this.#flush(row)
      await this.#end(row, signal, null)
    } finally {
      done()
      await logs.finish(row)
      const server = servers.find(row.serverId)
      if (server) servers.meter.changed(server)
    }
  }

  async #build(
    row: BuildRow,
    { row: server, sandbox }: Pick<Work, 'sandbox'> & { row: Work['server'] },
    signal: AbortSignal,
  ): Promise<Built> {
    const { records, servers, secrets, logs, isInProject } = this.#dependencies
    const { begun, queued } = records.idsOf(row.serverId)
    await logs.keepOnly(row.serverId, [...queued, ...begun.slice(0, LOGS_KEPT)])
    const log = await logs.of(row)
    const environment = (): Readonly<Record<string, string>> => {
      const variables = secrets.environment(row.serverId)
      log.masks.add(Object.values(variables))
      return variables
    }
    environment()
    const elsewhere = new Map<string, boolean>()
    const isElsewhere = (path: string): boolean => {
      const folder = path.split('/', PROJECT_DEPTH).join('/')
      const known = elsewhere.get(folder) ?? isInProject(row.serverId, folder)
      elsewhere.set(folder, known)
      return known
    }
    log.append('berth', `Goal: ${shortened(row.goal)}`)
    const pipeline = new Pipeline(this.#dependencies, {
      row,
      server,
      sandbox,
      workspace: servers.workspace(server),
      log,
      signal,
      environment,
      isElsewhere,
    })
    try {
      return await pipeline.run()
    } catch (error) {
      // Its record says already that it is over, but not what it has left in the phase that was cut short.
      if (signal.aborted && !this.#stopped) records.revises(row, await pipeline.artifacts())
      throw error
    }
  }

  /** Writes that a build is over. Where that cannot be, as on a full disk, it is not over until it can. */
  async #end(row: BuildRow, signal: AbortSignal, url: string | null, progress: Progress = {}): Promise<void> {
    const { records, logger } = this.#dependencies
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        return records.ends(row, url, progress)
      } catch (error) {
        if (attempt === 1)
          logger.error('the end of a build cannot be written yet', { buildId: row.id, error })
        await Bun.sleep(RETRY_MS)
      }
    }
  }

  /** Who sees that a build is over can read why. */
  async #flush(row: BuildRow): Promise<void> {
    const { logs, logger } = this.#dependencies
    try {
      await (await logs.of(row)).flush()
    } catch (error) {
      logger.warn("a build's log cannot be written", { buildId: row.id, error })
    }
  }
}

function shortened(goal: string): string {
  const [first = ''] = goal.trim().split('\n', 1)
  const isWhole = first.length <= SHOWN_GOAL && first.length === goal.trim().length
  return isWhole ? first : `${first.slice(0, SHOWN_GOAL)}…`
}
