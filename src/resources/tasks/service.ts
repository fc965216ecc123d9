import { BerthError, badRequest, notFound } from '../../errors.ts'
import { type Caller, mayReachServer } from '../../http/caller.ts'
import type { SendEvent } from '../../http/sse.ts'
import type { Lifecycle } from '../../runtime/service.ts'
import { type Database, ReadCache } from '../../storage/database.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { followTranscript } from './follow.ts'
import type { CreatedTask, Task, TaskEvent } from './model.ts'
import { type RecordsDependencies, TaskRecords } from './records.ts'
import { type RunnerDependencies, TaskRunner } from './runner.ts'
import { type TaskRow, toTask } from './table.ts'

/** Milliseconds that `stop` waits for agents. */
const STOP_TIMEOUT_MS = 1_000

const STOPPED = 'The server stopped while the task ran.'
const CAPPED = 'The budget of the account is used up: its servers were put to sleep.'
const DELETED = 'The server was deleted while the task ran.'

/** Dependencies of the tasks. */
type TasksDependencies = RecordsDependencies &
  Omit<RunnerDependencies, 'records'> & { database: Pick<Database, 'version'> }

/** Tasks as callers see them. */
export class TasksService implements Lifecycle, ServerLifecycleListener {
  readonly #dependencies: TasksDependencies
  readonly #records: TaskRecords
  readonly #runner: TaskRunner
  readonly #servers: ServersService
  /** The lists of servers and of accounts, by their ids. */
  readonly #lists: ReadCache<Task[]>
  /** Fires when readers of transcripts must disconnect. */
  readonly #closing = new AbortController()
  #stopping = false

  constructor(dependencies: TasksDependencies) {
    this.#dependencies = dependencies
    this.#records = new TaskRecords(dependencies)
    this.#runner = new TaskRunner({ ...dependencies, records: this.#records })
    this.#servers = dependencies.servers
    this.#lists = new ReadCache(dependencies.database.version)
  }

  /** Marks the tasks that a killed berth left unfinished as failed. */
  recover(): void {
    const status = 'failed'
    const result = 'berth ended unexpectedly while the task ran.'
    for (const row of this.#records.listUnfinished()) {
      this.#records.setStatus(row, { status, result }, () =>
        this.#records.addEvent(row.id, this.#records.lastSeq(row.id) + 1, { type: 'status', status, result }),
      )
    }
  }

  /** Ends the tasks that run on the server. */
  serverStopping(serverId: string): void {
    // Looking up the reason costs a query, which most stops do not need.
    if (!this.#runner.runsOnServer(serverId)) return
    const row = this.#servers.records.find(serverId)
    const result = row && this.#dependencies.metering.isCapped(row.accountId) ? CAPPED : STOPPED
    this.#runner.endOnServer(
      serverId,
      row ? { status: 'failed', result } : { status: 'gone', result: DELETED },
    )
  }

  /** Emits the failure of the server's unfinished tasks, whose records go with the server's. */
  serverDeleting({ id, accountId }: ServerRow): void {
    for (const task of this.#records.listUnfinished(id)) {
      const payload = { task_id: task.id, server_id: id, status: 'failed', result: DELETED }
      this.#dependencies.outbox.emit(accountId, 'task.failed', payload)
    }
  }

  /**
   * Returns the tasks of a server, newest first.
   *
   * @throws BerthError 404
   */
  list(caller: Caller, serverId: string): Task[] {
    this.#servers.getRow(caller, serverId)
    return this.#lists.get(serverId, () => this.#records.listByServer(serverId).map(toTask))
  }

  /** Lists the tasks of all servers that the caller may access, newest first. */
  listAll(caller: Caller): Task[] {
    const { accountId } = caller
    const all = this.#lists.get(accountId, () => this.#records.listByAccount(accountId).map(toTask))
    return caller.servers === null ? all : all.filter(({ serverId }) => mayReachServer(caller, serverId))
  }

  /** Returns a task. @throws BerthError 404 */
  get(caller: Caller, serverId: string, id: string): Task {
    return toTask(this.getRow(caller, serverId, id))
  }

  /** Returns the record of a task. @throws BerthError 404 */
  getRow(caller: Caller, serverId: string, id: string): TaskRow {
    this.#servers.getRow(caller, serverId)
    const row = this.#records.find(id)
    if (row?.serverId !== serverId) throw notFound(`The task "${id}"`)
    return row
  }

  /**
   * Gives a server's agent a goal. A sleeping server is started; if that fails, the task fails.
   *
   * @throws BerthError 402 if the budget is used up, 404
   */
  async create(caller: Caller, serverId: string, goal: string): Promise<CreatedTask> {
    const server = this.#servers.getRow(caller, serverId)
    this.#servers.checkBudget(server)
    if (this.#stopping) throw new BerthError('service_unavailable', 'berth is being stopped.')
    const row = this.#records.add(caller.accountId, serverId, goal)
    const awake = this.#runner.start(row)
    if (!this.#servers.lifecycle.sandbox(serverId)) await awake
    return { task_id: row.id, status: this.#records.find(row.id)?.status ?? 'failed' }
  }

  /**
   * Answers a task's question.
   *
   * @throws BerthError 400 if it waits for none, 404
   */
  answer(caller: Caller, serverId: string, id: string, answer: string): Task {
    const row = this.getRow(caller, serverId, id)
    if (!this.#runner.find(id)?.answer(answer)) {
      throw badRequest(`The task waits for no answer: it is ${row.status}.`)
    }
    return this.get(caller, serverId, id)
  }

  /**
   * Cancels a task. Cancelling it again does nothing. Resolves when nothing of it runs.
   *
   * @throws BerthError 400 if it has ended, 404
   */
  async cancel(caller: Caller, serverId: string, id: string): Promise<Task> {
    const { status } = this.getRow(caller, serverId, id)
    if (status === 'completed' || status === 'failed')
      throw badRequest(`The task has ended already: it is ${status}.`)
    await this.#runner.end(id, { status: 'cancelled' })
    return this.get(caller, serverId, id)
  }

  /** Returns the events of a task's transcript after `seq` `after`, oldest first. @throws BerthError 404 */
  listEvents(caller: Caller, serverId: string, id: string, after: number): TaskEvent[] {
    this.getRow(caller, serverId, id)
    return this.#records.listEvents(id, after)
  }

  /** Sends the events of a transcript, then new ones, until the task has ended or the reader disconnects. */
  follow(id: string, after: number, gone: AbortSignal, send: SendEvent): Promise<void> {
    const transcript = this.#runner.find(id)?.transcript ?? null
    const signal = AbortSignal.any([gone, this.#closing.signal])
    return followTranscript({ taskId: id, records: this.#records, transcript, after, signal: signal, send })
  }

  /** Returns the number of an event of a task's transcript; undefined if there is no such event. */
  findEvent(id: string, seq: number): number | undefined {
    const isNumber = Number.isSafeInteger(seq) && seq > 0
    return isNumber
      ? this.#records.listEvents(id, seq - 1, 1).find((event) => event.seq === seq)?.seq
      : undefined
  }

  /**
   * Releases an agent that waits in a scenario's step `hold`.
   *
   * @throws BerthError 400 if it is not held, 404
   */
  release(id: string): Task {
    const row = this.#records.find(id)
    if (!row) throw notFound(`The task "${id}"`)
    if (!this.#runner.find(id)?.release()) throw badRequest(`The task is not held: it is ${row.status}.`)
    return toTask(this.#records.find(id) ?? row)
  }

  /** Returns the goal and the whole transcript of a task of any account. @throws BerthError 404 */
  record(id: string): { goal: string; events: TaskEvent[] } {
    const row = this.#records.find(id)
    if (!row) throw notFound(`The task "${id}"`)
    return { goal: row.goal, events: this.#records.listEvents(id, 0) }
  }

  /** Reports whether an agent waits in a scenario's step `hold`. */
  isHeld(id: string): boolean {
    return this.#runner.find(id)?.isHeld ?? false
  }

  /** Accepts no more tasks, ends the running ones and their streams. Does not wait for agents that do not react. */
  async stop(): Promise<void> {
    this.#stopping = true
    const ended = this.#runner.endAll({
      status: 'failed',
      result: 'berth was stopped while the task ran.',
    })
    await Promise.race([ended, Bun.sleep(STOP_TIMEOUT_MS)])
    this.#closing.abort()
  }
}
