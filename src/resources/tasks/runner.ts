import type { Agent, Outcome } from '../../agents/agents.ts'
import { explanationOf } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Masks } from '../../runtime/masks.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TaskRecords } from './records.ts'
import { type TaskEnd, TaskRun } from './run.ts'
import type { TaskRow } from './table.ts'

/** Milliseconds of real time between attempts to write the end of a task. */
const RETRY_MS = 1_000

/** Dependencies of the runner. */
export interface RunnerDependencies {
  records: TaskRecords
  servers: ServersService
  secrets: SecretsService
  /** Returns the credential that every command of a server has, which transcripts must not show. */
  credentialOf: (serverId: string) => string
  logger: Logger
  /** Loads the agent. */
  agent: () => Promise<Agent>
}

/** A run that has not ended. */
interface ActiveRun {
  run: TaskRun
  serverId: string
  done: Promise<void>
}

/** Runs tasks, several at once on a server, and ends them with the server. */
export class TaskRunner {
  readonly #dependencies: RunnerDependencies
  readonly #runs = new Map<string, ActiveRun>()
  /** Writes that failed, for example on a full disk, by task id. */
  readonly #pendingWrites = new Map<string, () => void>()
  #retry: ReturnType<typeof setInterval> | undefined

  constructor(dependencies: RunnerDependencies) {
    this.#dependencies = dependencies
  }

  /** Starts a task. Resolves when its server is awake, or the task has ended without it. */
  start(row: TaskRow): Promise<void> {
    // All tasks of a server hide the same values, which may be many: one `Masks` is enough.
    const other = [...this.#runs.values()].find(({ serverId }) => serverId === row.serverId)
    const masks = other?.run.masks ?? new Masks()
    masks.add([this.#dependencies.credentialOf(row.serverId)])
    const run = new TaskRun(row, this.#dependencies.records, masks)
    const awake = Promise.withResolvers<void>()
    const done = this.#run(row, run, awake.resolve)
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

  /** Returns a running task, or undefined. */
  find(taskId: string): TaskRun | undefined {
    return this.#runs.get(taskId)?.run
  }

  /**
   * Ends a task. Resolves when nothing of it runs.
   *
   * @throws the error that prevents writing its end; the write is tried again
   */
  async end(taskId: string, ending: TaskEnd): Promise<void> {
    const active = this.#runs.get(taskId)
    active?.run.end(ending)
    await active?.done
    this.#retryWrite(taskId)
  }

  /** Reports whether a task runs on a server. */
  runsOnServer(serverId: string): boolean {
    return [...this.#runs.values()].some((one) => one.serverId === serverId)
  }

  /** Ends the tasks that run on a server. Their records are updated when this returns. */
  endOnServer(serverId: string, ending: TaskEnd): void {
    for (const one of this.#runs.values()) if (one.serverId === serverId) one.run.end(ending)
  }

  /** Ends all tasks. Resolves when nothing of them runs. */
  async endAll(ending: TaskEnd): Promise<void> {
    clearInterval(this.#retry)
    await Promise.allSettled([...this.#runs.keys()].map((id) => this.end(id, ending)))
    clearInterval(this.#retry)
  }

  async #run(row: TaskRow, run: TaskRun, awake: () => void): Promise<void> {
    // Records an end from outside at once, even if the agent takes long to notice it.
    run.signal.addEventListener('abort', () => this.#handleAbort(row, run, run.signal.reason as TaskEnd), {
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
      const outcome = await run.runAgent(await agent(), {
        sandbox: used.sandbox,
        workspace: servers.workspace(used.row),
        environment: () => secrets.environment(row.serverId),
        onChange: () => servers.meter.changed(used.row),
      })
      if (!run.signal.aborted) this.#writeEnd(row, run, outcome)
    } catch (error) {
      if (!run.signal.aborted)
        this.#writeEnd(row, run, { status: 'failed', result: this.#failureMessage(row, run, error) })
    } finally {
      release()
      if (!this.#pendingWrites.has(row.id)) run.transcript.end()
    }
  }

  /** Writes the end of a task and ends its transcript. Tries again later if that fails. */
  #writeEnd(row: TaskRow, run: TaskRun, end: Outcome | Exclude<TaskEnd, { status: 'gone' }>): void {
    const change = 'result' in end ? { status: end.status, result: end.result } : { status: end.status }
    const write = (): void => {
      run.setStatus(change, () => run.transcript.add({ type: 'status', ...change }))
      run.transcript.end()
    }
    try {
      write()
    } catch (error) {
      this.#dependencies.logger.error('the end of a task cannot be written yet', { taskId: row.id, error })
      this.#pendingWrites.set(row.id, write)
      this.#retry ??= setInterval(() => this.#retryAllWrites(), RETRY_MS).unref()
    }
  }

  /**
   * @throws if it still cannot be written
   */
  #retryWrite(taskId: string): void {
    this.#pendingWrites.get(taskId)?.()
    this.#pendingWrites.delete(taskId)
  }

  #retryAllWrites(): void {
    for (const id of this.#pendingWrites.keys()) {
      try {
        this.#retryWrite(id)
      } catch {
        // The first failure was logged, and the interval tries again.
      }
    }
    if (this.#pendingWrites.size > 0) return
    clearInterval(this.#retry)
    this.#retry = undefined
  }

  #handleAbort(row: TaskRow, run: TaskRun, ending: TaskEnd): void {
    if (ending.status === 'gone') run.transcript.end({ type: 'status', ...ending, status: 'failed' })
    else this.#writeEnd(row, run, ending)
  }

  /** Returns the message of a failure for the task's result. */
  #failureMessage(row: TaskRow, run: TaskRun, error: unknown): string {
    const message = explanationOf(error)
    if (message !== null) return run.mask(message)
    this.#dependencies.logger.error('a task failed of an internal error', { taskId: row.id, error })
    return "An internal error of berth ended the task; berth's log says more."
  }
}
