import { AsyncLocalStorage } from 'node:async_hooks'
import type { AppPlan } from '../../hosting/app.ts'
import { accountCaller } from '../../http/caller.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PROJECT_PATH_DEPTH } from '../projects/inside.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { BuildContext } from './context.ts'
import { type BuildLogs, MAX_LOGS_KEPT } from './logs.ts'
import { BuildPipeline, type BuildResult, type PipelineDependencies } from './pipeline.ts'
import type { BuildProgress, BuildRecords } from './records.ts'
import type { BuildRow } from './table.ts'

/** Most characters of the goal in the log's first line. @bound reader */
const MAX_GOAL_SHOWN = 200

/** Milliseconds of real time between attempts to write the end of a build. */
const RETRY_MS = 500

/** Dependencies of the queue. */
export interface QueueDependencies extends PipelineDependencies {
  records: BuildRecords
  servers: ServersService
  secrets: SecretsService
  /** Returns the credential that every command of a server has, which logs must not show. */
  credentialOf: (serverId: string) => string
  logs: BuildLogs
  logger: Logger
  /** Reports whether a path of a server's workspace is in a project's directory. */
  isInProject: (serverId: string, path: string) => boolean
}

/** Runs a function in the async context in which it was captured. */
type AsyncContext = ReturnType<typeof AsyncLocalStorage.snapshot>

/** Runs builds: one at a time on each server, in the order of their creation. */
export class BuildQueue {
  readonly #dependencies: QueueDependencies
  readonly #runs = new Map<string, { abort: AbortController; done: Promise<void> }>()
  /** The async contexts in which builds were added, by server and build: a build is started by the one before it. */
  readonly #contexts = new Map<string, Map<string, AsyncContext>>()
  #stopped = false

  constructor(dependencies: QueueDependencies) {
    this.#dependencies = dependencies
  }

  /** Adds a new build, and starts it if its server runs no other. */
  add({ id, serverId }: BuildRow): void {
    const contexts = this.#contexts.get(serverId) ?? new Map<string, AsyncContext>()
    this.#contexts.set(serverId, contexts.set(id, AsyncLocalStorage.snapshot()))
    this.startNext(serverId)
  }

  /** Starts the next waiting build of a server, if none runs. */
  startNext(serverId: string): void {
    if (this.#stopped || this.#runs.has(serverId)) return
    const next = this.#dependencies.records.listUnfinished(serverId).find(({ status }) => status === 'queued')
    const contexts = this.#contexts.get(serverId)
    if (next === undefined) {
      this.#contexts.delete(serverId)
      return
    }
    const abort = new AbortController()
    const inContext = contexts?.get(next.id) ?? ((work: () => Promise<void>) => work())
    const run = inContext(() => this.#run(next, abort.signal)).finally(() => this.#runs.delete(serverId))
    contexts?.delete(next.id)
    const done = run.then(
      () => this.startNext(serverId),
      // Does not start the next build: if the end could not be written, that would fail too.
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
    this.#contexts.delete(serverId)
    this.#runs.get(serverId)?.abort.abort(new DOMException('The build was ended.', 'AbortError'))
  }

  /** Starts no more builds and aborts the running ones. */
  stop(): void {
    this.#stopped = true
    for (const serverId of this.#runs.keys()) this.abort(serverId)
  }

  /** Resolves when no build runs. */
  async drain(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ done }) => done))
  }

  async #run(row: BuildRow, signal: AbortSignal): Promise<void> {
    const { records, servers, logs, logger } = this.#dependencies
    let done = () => {}
    try {
      const used = await servers.use(accountCaller(row.accountId), row.serverId, signal)
      done = used.done
      if (signal.aborted || !records.markRunning(row)) return
      const { url, artifacts } = await this.#build(row, used, signal)
      await this.#flushLog(row)
      await this.#markCompleted(row, signal, url, { artifacts })
    } catch (error) {
      // The caller of `abort` has written the reason.
      if (signal.aborted) return
      const reason = messageOf(error)
      logs.append(row, `The build could not be done: ${reason}`)
      logger.warn('a build could not be done', { buildId: row.id, error })
      await this.#flushLog(row)
      await this.#markCompleted(row, signal, null)
    } finally {
      done()
      await logs.close(row)
      const server = servers.records.find(row.serverId)
      if (server) servers.meter.changed(server)
    }
  }

  async #build(
    row: BuildRow,
    { row: server, sandbox }: Pick<BuildContext, 'sandbox'> & { row: BuildContext['server'] },
    signal: AbortSignal,
  ): Promise<BuildResult> {
    const { records, servers, secrets, credentialOf, logs, isInProject } = this.#dependencies
    const { started, queued } = records.listIds(row.serverId)
    await logs.keepOnly(row.serverId, [...queued, ...started.slice(0, MAX_LOGS_KEPT)])
    const log = await logs.open(row)
    const environment = (plan?: AppPlan): Readonly<Record<string, string>> => {
      if (plan) secrets.generate(row.serverId, '', plan, secrets.environment(row.serverId))
      const variables = secrets.environment(row.serverId)
      log.masks.add([credentialOf(row.serverId)])
      log.masks.update(Object.values(variables))
      return variables
    }
    environment()
    const cache = new Map<string, boolean>()
    const isExcluded = (path: string): boolean => {
      const directory = path.split('/', PROJECT_PATH_DEPTH).join('/')
      const found = cache.get(directory) ?? isInProject(row.serverId, directory)
      cache.set(directory, found)
      return found
    }
    log.append('berth', `Goal: ${shorten(row.goal)}`)
    const pipeline = new BuildPipeline(this.#dependencies, {
      row,
      server,
      sandbox,
      workspace: servers.workspace(server),
      log,
      signal,
      environment,
      isExcluded,
    })
    try {
      return await pipeline.run()
    } catch (error) {
      // The record is completed already, but without the files that the interrupted phase left.
      if (signal.aborted && !this.#stopped) records.setArtifacts(row, await pipeline.listArtifacts())
      throw error
    }
  }

  /** Writes the end of a build. Tries again until it succeeds, for example if the disk is full. */
  async #markCompleted(
    row: BuildRow,
    signal: AbortSignal,
    url: string | null,
    progress: BuildProgress = {},
  ): Promise<void> {
    const { records, logger } = this.#dependencies
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        return records.markCompleted(row, url, progress)
      } catch (error) {
        if (attempt === 1)
          logger.error('the end of a build cannot be written yet', { buildId: row.id, error })
        await Bun.sleep(RETRY_MS)
      }
    }
  }

  /** Writes the log, so that it is complete when the build's status changes. */
  async #flushLog(row: BuildRow): Promise<void> {
    const { logs, logger } = this.#dependencies
    try {
      await (await logs.open(row)).flush()
    } catch (error) {
      logger.warn("a build's log cannot be written", { buildId: row.id, error })
    }
  }
}

function shorten(goal: string): string {
  const [first = ''] = goal.trim().split('\n', 1)
  const isWhole = first.length <= MAX_GOAL_SHOWN && first.length === goal.trim().length
  return isWhole ? first : `${first.slice(0, MAX_GOAL_SHOWN)}…`
}
