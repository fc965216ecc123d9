import { join } from 'node:path'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import { endedCredential, type WaitEnds } from '../../http/wait-ends.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PendingCounts } from '../../runtime/pending-counts.ts'
import { PrintedEnds, type Recorder } from '../../runtime/recorder.ts'
import type { Queries } from '../../storage/database.ts'
import { removeTree } from '../../storage/files.ts'
import type { Changes } from '../changes/types.ts'
import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { EndedExecutions, ExecutionRecords, type ReadExecution } from './ended-executions.ts'
import { bytesOf, inputOf } from './input-queue.ts'
import { KEPT_BYTES, KeptOutput } from './kept-output.ts'
import { type Leave, type LeftResult, leftResult } from './leave.ts'
import { LiveExecution } from './live-execution.ts'
import type { ExecRequest, Execution, ExecutionInput } from './model.ts'
import type { ExecEnd } from './output.ts'
import { asBackendError, type ExecService, type ExecWish } from './service.ts'
import { type ExecutionRow, toExecution } from './table.ts'

/** Most executions of a server that run. @bound client */
const MAX_RUNNING = 20
/** Milliseconds between records of the use of a server by one execution. */
const TOUCH_MS = 1_000

/** Dependencies of the executions. */
interface ExecutionsDependencies {
  queries: Queries
  servers: ServersService
  exec: ExecService
  clock: Clock
  ids: Ids
  logger: Logger
  changes: Changes
  recorder: Recorder | null
  /** Milliseconds without output, input and reader after which an execution ends; null for never. */
  executionIdleMs: number | null
  /** The directory of their output. */
  directory: string
}

/** A command to start; without a timeout if that is null. */
type BegunRequest = Omit<ExecRequest, 'timeoutMs'> & { readonly timeoutMs?: number | null }

/** Commands that run without a request that waits for them. */
export class ExecutionsService implements ServerLifecycleListener {
  readonly #dependencies: ExecutionsDependencies
  readonly #records: ExecutionRecords
  readonly #ended: EndedExecutions
  /** Those that run, by id: with a record, and those of requests that still wait. */
  readonly #live = new Map<string, LiveExecution>()
  /** Numbers of executions that are about to begin, by server. */
  readonly #beginning = new PendingCounts()
  /** What ends a running execution that nobody uses, by its id. */
  readonly #timers = new Map<string, Timer>()
  #isStopped = false

  constructor(dependencies: ExecutionsDependencies) {
    this.#dependencies = dependencies
    this.#records = new ExecutionRecords(dependencies.queries)
    this.#ended = new EndedExecutions({ ...dependencies, records: this.#records })
  }

  /**
   * Returns the executions of a server, newest first.
   *
   * @throws BerthError 404
   */
  list(caller: Caller, serverId: string): Execution[] {
    this.#dependencies.servers.getRow(caller, serverId)
    return this.#records.listByServer(serverId).map((row) => toExecution(this.#current(row)))
  }

  /**
   * Returns an execution.
   *
   * @throws BerthError 404
   */
  get(caller: Caller, serverId: string, id: string): Execution {
    return toExecution(this.#find(caller, serverId, id))
  }

  /** Returns an execution of any account, or undefined. */
  find(id: string): Execution | undefined {
    const row = this.#records.find(id)
    return row && toExecution(this.#current(row))
  }

  /**
   * Starts a command, and responds when it runs. One that cannot be recorded is ended.
   *
   * @throws BerthError 400, 402, 404, 502; 403 if the server has as many as it may
   */
  async create(caller: Caller, serverId: string, request: ExecRequest): Promise<Execution> {
    await this.#dependencies.exec.check(caller, serverId, request)
    const begun = this.#admit(serverId)
    try {
      const live = await this.#begin(caller, serverId, { ...request, timeoutMs: request.timeoutMs ?? null })
      try {
        this.#record(caller, live)
      } catch (error) {
        this.#discard(live)
        throw error
      }
      return toExecution(live.row)
    } finally {
      begun()
    }
  }

  /**
   * Runs a command, and returns its result when it has ended, or its output so far when it has not ended in time. Then it
   * goes on as an execution.
   *
   * @param ends cancel the command, until this resolves
   * @throws BerthError 400, 401, 402, 404, 502
   */
  async leave(
    caller: Caller,
    serverId: string,
    request: ExecRequest,
    { signal, whileValid }: WaitEnds,
    { afterMs, onOutput, fits }: Leave,
  ): Promise<LeftResult> {
    const live = await this.#begin(caller, serverId, request, onOutput)
    const cancel = (): void => live.cancel()
    let isInvalid = false
    const stopWatching = whileValid(() => {
      isInvalid = true
      cancel()
    })
    signal.addEventListener('abort', cancel)
    if (signal.aborted) cancel()
    try {
      await live.ended(afterMs)
      if (isInvalid) throw endedCredential()
      live.onOutput = undefined
      if (live.end === null) this.#record(caller, live)
      if (live.end?.failure) throw live.end.failure
      using read = this.#open(live.row)
      const result = leftResult(live, read.output)
      if (live.end === null || fits(result)) return result
      // What does not fit can be read afterwards.
      this.#record(caller, live)
      return { ...result, executionId: live.facts.id }
    } finally {
      stopWatching()
      signal.removeEventListener('abort', cancel)
      if (!live.isRecorded) this.#discard(live)
    }
  }

  /**
   * Opens the output of an execution for reading.
   *
   * @throws BerthError 404
   */
  open(caller: Caller, serverId: string, id: string): ReadExecution {
    const row = this.#find(caller, serverId, id)
    this.#live.get(id)?.use()
    return this.#open(row)
  }

  /** Resolves when an execution prints or has ended, or the signal aborts. At once if it has ended. */
  async changed(id: string, signal: AbortSignal): Promise<void> {
    const live = this.#live.get(id)
    if (live === undefined || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const end = [live.watch(() => resolve(null)), live.addReader()]
    signal.addEventListener('abort', resolve)
    await promise
    signal.removeEventListener('abort', resolve)
    for (const stop of end) stop()
  }

  /**
   * Writes to the standard input of an execution.
   *
   * @returns the number of bytes
   * @throws BerthError 400, 404; 403 if it does not read
   */
  write(caller: Caller, serverId: string, id: string, input: ExecutionInput): number {
    const row = this.#find(caller, serverId, id)
    const bytes = bytesOf(input)
    const live = this.#live.get(id)
    if (row.status !== 'running' || live === undefined)
      throw badRequest(`The execution "${id}" has ended, so it takes no more input.`)
    if (live.input === null)
      throw badRequest(
        `The standard input of the execution "${id}" is not open. Start the command with "openStdin": true.`,
      )
    if (live.input.isClosed) throw badRequest(`The standard input of the execution "${id}" has ended.`)
    live.input.write(bytes)
    if (input.end === true) live.input.end()
    live.use()
    this.#dependencies.servers.lifecycle.touch(serverId)
    return bytes.length
  }

  /**
   * Ends an execution, and keeps its record; removes the record of one that has ended. Resolves when it has ended.
   *
   * @throws BerthError 404
   */
  async delete(caller: Caller, serverId: string, id: string): Promise<void> {
    const row = this.#find(caller, serverId, id)
    const live = this.#live.get(id)
    live?.cancel()
    await (live ? live.ended() : this.#ended.remove(row))
  }

  /** Returns the bytes on disk of the output of a server's executions. */
  storageBytes(serverId: string): number {
    const kept = (bytes: number): number => Math.min(bytes, KEPT_BYTES)
    return this.#records
      .listByServer(serverId)
      .map((row) => this.#current(row))
      .reduce((sum, { stdoutBytes, stderrBytes }) => sum + kept(stdoutBytes) + kept(stderrBytes), 0)
  }

  /** Records that executions ended with an earlier berth, and removes what does not belong together. */
  recover(): void {
    this.#ended.recover()
  }

  serverStopping(serverId: string): void {
    for (const live of this.#liveOf(serverId)) live.expectEnd()
  }

  serverDeleting({ id }: ServerRow): void {
    for (const row of this.#records.listByServer(id)) {
      this.#cancelTimer(row.id)
      this.#ended.forget(row.id)
    }
    for (const live of this.#liveOf(id)) live.expectEnd()
  }

  async serverDeleted(serverId: string): Promise<void> {
    for (const live of this.#liveOf(serverId)) this.#live.delete(live.facts.id)
    removeTree(join(this.#dependencies.directory, serverId))
  }

  /** Records that all have ended. Their processes end with their servers. */
  stop(): void {
    this.#isStopped = true
    for (const live of [...this.#live.values()].filter(({ isRecorded }) => isRecorded)) {
      this.#recordOutput(live.facts.id, live.output)
      live.finish(null)
      this.#records.update(live.row)
    }
  }

  /** Starts a command. Resolves when it runs. @throws BerthError */
  async #begin(
    caller: Caller,
    serverId: string,
    request: BegunRequest,
    onOutput?: LiveExecution['onOutput'],
  ): Promise<LiveExecution> {
    const { servers, exec, clock, ids, logger } = this.#dependencies
    const { accountId } = servers.getRow(caller, serverId)
    const id = ids.next('exe', (taken) => this.#live.has(taken) || this.#records.find(taken) !== undefined)
    const facts = { id, serverId, accountId, command: request.command, startedAt: clock.now() }
    const { stdin, input } = inputOf(request)
    let touchedAt = 0
    const live = new LiveExecution(facts, KeptOutput.create(this.#ended.pathOf(facts)), {
      clock,
      input,
      onOutput,
      onUse: () => {
        if (clock.elapsed() - touchedAt < TOUCH_MS || !live.isRecorded) return
        touchedAt = clock.elapsed()
        servers.lifecycle.touch(serverId)
      },
    })
    this.#live.set(id, live)
    try {
      const command = await exec.start(caller, serverId, { ...request, ...stdin } as ExecWish, {
        owner: live.owner,
        onOutput: (stream, data) => live.print(stream, data),
      })
      const handle = (exit: ExecEnd | null, error: unknown) => this.#handleEnd(live, exit, error)
      command.end
        .then(
          (exit) => handle(exit, null),
          (error) => handle(null, error),
        )
        .catch((error) => logger.error('the end of a command is not recorded', { executionId: id, error }))
      await live.begin(command)
      return live
    } catch (error) {
      this.#discard(live)
      throw asBackendError(error)
    }
  }

  /** Records an execution, unless its server was deleted meanwhile. @throws BerthError 404 */
  #record(caller: Caller, live: LiveExecution): void {
    const { row } = live
    this.#dependencies.servers.getRow(caller, row.serverId)
    this.#records.add(row)
    live.isRecorded = true
    live.letGo()
    this.#notify(row)
    if (live.end === null) {
      this.#watchIdle(live)
      return
    }
    using read = this.#ended.open(row)
    this.#recordOutput(row.id, read.output)
    this.#ended.add(row)
  }

  /** Has what is kept of the output of an execution in the report of a run. */
  #recordOutput(id: string, output: KeptOutput): void {
    const { recorder } = this.#dependencies
    if (recorder === null) return
    const printed = new PrintedEnds()
    for (const item of output.read({ after: { stdout: 0, stderr: 0 }, limit: Infinity }).items) {
      if ('bytes' in item) printed.write(item.bytes)
      else printed.skip(item.dropped)
    }
    recorder.output(id, printed)
  }

  #handleEnd(live: LiveExecution, exit: ExecEnd | null, error: unknown): void {
    const { id } = live.facts
    if (live.isRecorded && live.end === null) this.#recordOutput(id, live.output)
    live.finish(exit, error)
    if (this.#live.get(id) !== live) return
    if (live.isRecorded) this.#live.delete(id)
    if (error !== null && !(error instanceof BerthError))
      this.#dependencies.logger.error('the output of a command could not be kept', { executionId: id, error })
    if (!live.isRecorded || this.#isStopped) return
    this.#records.update(live.row)
    this.#notify(live.facts)
    this.#ended.add(live.row)
  }

  /** Ends an execution that nobody has used for long enough. */
  #watchIdle(live: LiveExecution): void {
    const { clock, executionIdleMs } = this.#dependencies
    if (executionIdleMs === null) return
    const { id } = live.facts
    const watch = (ms: number): void => {
      const check = (): void | Promise<void> => {
        const left = live.lastUsedAt + executionIdleMs - clock.now()
        if (left > 0) return watch(left)
        live.expectEnd()
        live.cancel()
        return live.ended()
      }
      this.#timers.set(id, clock.after(ms, check, { name: 'execution.end', id }))
    }
    watch(executionIdleMs)
  }

  /** Removes the output of a command that becomes no execution, and ends the command if it runs. */
  #discard(live: LiveExecution): void {
    live.cancel()
    live.output.complete()
    this.#live.delete(live.facts.id)
    removeTree(this.#ended.pathOf(live.facts))
  }

  /**
   * Counts an execution that is about to begin, until the returned function is called.
   *
   * @throws BerthError 403
   */
  #admit(serverId: string): () => void {
    const running = this.#liveOf(serverId).filter(({ isRecorded }) => isRecorded).length
    if (running + this.#beginning.of(serverId) >= MAX_RUNNING) {
      throw new BerthError(
        'plan_limit',
        `The server has ${MAX_RUNNING} executions that run, which is the most. End one: DELETE /servers/${serverId}/executions/{executionId}.`,
      )
    }
    return this.#beginning.add(serverId)
  }

  #open(row: ExecutionRow): ReadExecution {
    const live = this.#live.get(row.id)
    if (live?.end === null) return { row: live.row, output: live.output, [Symbol.dispose]: () => {} }
    return this.#ended.open(this.#current(row))
  }

  #find(caller: Caller, serverId: string, id: string): ExecutionRow {
    this.#dependencies.servers.getRow(caller, serverId)
    const row = this.#records.find(id)
    if (row?.serverId !== serverId) throw notFound(`The execution "${id}"`)
    return this.#current(row)
  }

  /** Returns a row with what is known of it while it runs. */
  #current(row: ExecutionRow): ExecutionRow {
    return this.#live.get(row.id)?.row ?? row
  }

  #liveOf(serverId: string): LiveExecution[] {
    return [...this.#live.values()].filter(({ facts }) => facts.serverId === serverId)
  }

  #cancelTimer(id: string): void {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
  }

  #notify({ id, serverId, accountId }: Pick<ExecutionRow, 'id' | 'serverId' | 'accountId'>): void {
    this.#dependencies.changes.notify('execution', id, accountId, serverId)
  }
}
