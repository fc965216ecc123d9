import type { CommandOwner } from '../../compute/sandbox.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { InputQueue } from './input-queue.ts'
import type { KeptOutput } from './kept-output.ts'
import type { ExecEnd, Stream } from './output.ts'
import type { StartedCommand } from './service.ts'
import type { ExecutionRow } from './table.ts'

/** Bytes of output between two pauses, and the milliseconds of a pause: endless output must not keep berth busy. */
const BURST_BYTES = 256 * 1024
const PAUSE_MS = 5

/** What does not change about an execution. */
type ExecutionFacts = Pick<ExecutionRow, 'id' | 'serverId' | 'accountId' | 'command' | 'startedAt'>

/** How an execution ended. */
type ExecutionEnd = Pick<ExecutionRow, 'status' | 'exitCode' | 'timedOut' | 'endedAt'> & {
  /** As a response to a command has it; null if the command could not be run to its end. */
  readonly exit: ExecEnd | null
  /** Why it could not; null if it could. */
  readonly failure: unknown
}

/** Dependencies of an execution. */
interface ExecutionDependencies {
  clock: Clock
  /** Its standard input, if that can be written while it runs. */
  input: InputQueue | null
  /** Receives its output besides the files. */
  onOutput?: ((stream: Stream, data: Uint8Array) => void) | undefined
  /** Called when it prints or is written to. */
  onUse: () => void
}

/** A command that may outlive the request that started it, while it runs. */
export class LiveExecution {
  readonly facts: ExecutionFacts
  readonly output: KeptOutput
  readonly input: InputQueue | null
  /** What its processes belong to: without an id until it has a record. */
  readonly owner: CommandOwner
  /** Whether it has a record. */
  isRecorded = false
  /** Receives its output besides the files. */
  onOutput: ExecutionDependencies['onOutput']
  readonly #dependencies: ExecutionDependencies
  readonly #watchers = new Set<() => void>()
  #pid: number | null = null
  #command: StartedCommand | null = null
  #lastUsedAt: number
  #readers = 0
  #burst = 0
  #isEndedByBerth = false
  #end: ExecutionEnd | null = null

  constructor(facts: ExecutionFacts, output: KeptOutput, dependencies: ExecutionDependencies) {
    this.facts = facts
    this.output = output
    this.input = dependencies.input
    this.onOutput = dependencies.onOutput
    this.#dependencies = dependencies
    this.#lastUsedAt = facts.startedAt
    const idOf = (): string | null => (this.isRecorded ? facts.id : null)
    this.owner = {
      kind: 'exec',
      get id() {
        return idOf()
      },
    }
  }

  /** How it ended; null while it runs. */
  get end(): ExecutionEnd | null {
    return this.#end
  }

  /** When it was last used, milliseconds since 1970: now while somebody reads its output. */
  get lastUsedAt(): number {
    return this.#readers > 0 ? this.#dependencies.clock.now() : this.#lastUsedAt
  }

  /** The record. */
  get row(): ExecutionRow {
    const { stdout, stderr } = this.output.counts
    const end = this.#end ?? { status: 'running', exitCode: null, timedOut: false, endedAt: null }
    const { status, exitCode, timedOut, endedAt } = end
    return {
      ...this.facts,
      ...{ pid: this.#pid, stdoutBytes: stdout, stderrBytes: stderr },
      ...{ status, exitCode, timedOut, endedAt },
    }
  }

  /** Takes over the command once it is started. Resolves when it runs or has ended; rejects if it cannot run. */
  async begin(command: StartedCommand): Promise<void> {
    this.#command = command
    this.#pid = await command.execution.pid
  }

  /** Adds output. The command waits for the returned promise. */
  print(stream: Stream, data: Uint8Array): Promise<void> | undefined {
    this.output.write(stream, data)
    this.onOutput?.(stream, data)
    this.use()
    this.#dependencies.onUse()
    this.#wake()
    this.#burst += data.length
    if (this.#burst < BURST_BYTES) return undefined
    this.#burst = 0
    return Bun.sleep(PAUSE_MS)
  }

  /** Notes a use, after which it is idle from anew. */
  use(): void {
    this.#lastUsedAt = this.#dependencies.clock.now()
  }

  /** Counts a reader until the returned function is called. */
  addReader(): () => void {
    this.#readers += 1
    return () => {
      this.#readers -= 1
      this.use()
    }
  }

  /** Lets its server fall asleep while it runs. */
  letGo(): void {
    this.#command?.letGo()
  }

  /** Ends the command and everything it started, as a cancelled command is ended. */
  cancel(): void {
    this.#command?.execution.cancel()
  }

  /** Notes that berth, not the command itself or a caller, is what ends it. */
  expectEnd(): void {
    this.#isEndedByBerth = true
  }

  /** Notes how the command has ended. @param exit null if it could not be run to its end, for the reason of `failure` */
  finish(exit: ExecEnd | null, failure: unknown = null): void {
    if (this.#end !== null) return
    const isEnded = this.#isEndedByBerth || exit === null || exit.timedOut || this.#command?.sandbox.ending
    this.#end = {
      status: isEnded ? 'ended' : 'exited',
      exitCode: isEnded ? null : exit.exitCode,
      timedOut: exit?.timedOut ?? false,
      endedAt: this.#dependencies.clock.now(),
      exit,
      failure,
    }
    this.input?.end()
    this.output.complete()
    this.#wake()
  }

  /** Calls `changed` at new output and at the end, until the returned function is called. */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  /** Resolves when it has ended, or after `ms` milliseconds if they are given. */
  async ended(ms?: number): Promise<void> {
    if (this.#end !== null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
    const unwatch = this.watch(() => this.#end !== null && resolve())
    await promise
    clearTimeout(timer)
    unwatch()
  }

  #wake(): void {
    for (const changed of this.#watchers) changed()
  }
}
