import { type Agent, AgentError, type Outcome } from '../../agents/agent.ts'
import { ComputeError } from '../../compute/driver.ts'
import { BerthError } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TaskRecords } from './records.ts'
import { type Ending, TaskRun } from './run.ts'
import type { TaskRow } from './table.ts'

/** How long, in physical time, an end waits that could not be written, until that is tried again. */
const RETRY_MS = 1_000

/** Dependencies of the runner. */
export interface RunnerDependencies {
  records: TaskRecords
  servers: ServersService
  secrets: SecretsService
  logger: Logger
  /** Loads the agent. */
  agent: () => Promise<Agent>
}

/** A run under way. */
interface UnderWay {
  run: TaskRun
  serverId: string
  done: Promise<void>
}

/** Runs tasks, several at once on a server, and ends them with the server. */
export class TaskRunner {
  readonly #dependencies: RunnerDependencies
  readonly #runs = new Map<string, UnderWay>()
  /** Retries to write the ends of tasks that could not be written, as on a full disk. */
  readonly #unwritten = new Map<string, () => void>()
  #retry: ReturnType<typeof setInterval> | undefined

  constructor(dependencies: RunnerDependencies) {
    this.#dependencies = dependencies
  }

  /** Begins a task. @returns resolves when its server is awake, or the task has failed for want of it */
  begin(row: TaskRow): Promise<void> {
    const run = new TaskRun(row, this.#dependencies.records)
    const awake = Promise.withResolvers<void>()
    const done = this.#follow(row, run, awake.resolve)
      .catch((error) =>
        this.#dependencies.logger.error('a task could not be followed to its end', { taskId: row.id, error }),
      )
      .finally(() => {
        this.#runs.delete(row.id)
        awake.resolve()
      })
    this.#runs.set(row.id, { run, serverId: row.serverId, done })
    return awake.promise
  }

  /** A task that runs. */
  find(taskId: string): TaskRun | undefined {
    return this.#runs.get(taskId)?.run
  }

  /**
   * Ends a task. Resolves when nothing of it runs.
   *
   * @throws the error that prevents writing its end, which is written as soon as possible
   */
  async end(taskId: string, ending: Ending): Promise<void> {
    const underWay = this.#runs.get(taskId)
    underWay?.run.end(ending)
    await underWay?.done
    this.#writeLate(taskId)
  }

  /** Whether a task runs on a server. */
  isBusy(serverId: string): boolean {
    return [...this.#runs.values()].some((one) => one.serverId === serverId)
  }

  /** Ends the tasks of a server. Their records are updated when this returns. */
  endOf(serverId: string, ending: Ending): void {
    for (const one of this.#runs.values()) if (one.serverId === serverId) one.run.end(ending)
  }

  /** Ends all tasks; resolves when nothing of them runs any more. */
  async endAll(ending: Ending): Promise<void> {
    clearInterval(this.#retry)
    await Promise.allSettled([...this.#runs.keys()].map((id) => this.end(id, ending)))
    clearInterval(this.#retry)
  }

  async #follow(row: TaskRow, run: TaskRun, awake: () => void): Promise<void> {
    // Records an end from outside at once, even if the agent takes long to notice it.
    run.signal.addEventListener('abort', () => this.#ended(row, run, run.signal.reason as Ending), {
      once: true,
    })
    let release = () => {}
    try {
      const { servers, secrets, agent } = this.#dependencies
      const used = await servers.use(accountCaller(row.accountId), row.serverId, run.signal)
      release = () => {
        used.done()
        // A program that is itself the agent writes files without the workbench.
        servers.meter.changed(used.row)
      }
      awake()
      run.signal.throwIfAborted()
      const outcome = await run.work(await agent(), {
        sandbox: used.sandbox,
        workspace: servers.workspace(used.row),
        environment: () => secrets.environment(row.serverId),
        changed: () => servers.meter.changed(used.row),
      })
      if (!run.signal.aborted) this.#ends(row, run, outcome)
    } catch (error) {
      if (!run.signal.aborted) this.#ends(row, run, { status: 'failed', result: this.#told(row, run, error) })
    } finally {
      release()
      if (!this.#unwritten.has(row.id)) run.transcript.end()
    }
  }

  /** Writes the end of a task that has none yet, and ends its transcript with it. */
  #ends(row: TaskRow, run: TaskRun, end: Outcome | Exclude<Ending, { status: 'gone' }>): void {
    const change = 'result' in end ? { status: end.status, result: end.result } : { status: end.status }
    const write = (): void => {
      run.becomes(change, () => run.transcript.add({ type: 'status', ...change }))
      run.transcript.end()
    }
    try {
      write()
    } catch (error) {
      this.#dependencies.logger.error('the end of a task cannot be written yet', { taskId: row.id, error })
      this.#unwritten.set(row.id, write)
      this.#retry ??= setInterval(() => this.#writeAllLate(), RETRY_MS).unref()
    }
  }

  /**
   * @throws if it still cannot be written
   */
  #writeLate(taskId: string): void {
    this.#unwritten.get(taskId)?.()
    this.#unwritten.delete(taskId)
  }

  #writeAllLate(): void {
    for (const id of this.#unwritten.keys()) {
      try {
        this.#writeLate(id)
      } catch {
        // It was logged, and is tried again.
      }
    }
    if (this.#unwritten.size > 0) return
    clearInterval(this.#retry)
    this.#retry = undefined
  }

  #ended(row: TaskRow, run: TaskRun, ending: Ending): void {
    if (ending.status === 'gone') run.transcript.end({ type: 'status', ...ending, status: 'failed' })
    else this.#ends(row, run, ending)
  }

  /** What a person is told of a failure. */
  #told(row: TaskRow, run: TaskRun, error: unknown): string {
    if ([AgentError, BerthError, ComputeError].some((kind) => error instanceof kind)) {
      return run.mask((error as Error).message)
    }
    this.#dependencies.logger.error('a task failed of an unforeseen fault', { taskId: row.id, error })
    return 'An unforeseen fault of berth itself ended the task; its log says more.'
  }
}
