import type { Limits } from '../driver.ts'
import { GRACE_MS } from '../processes.ts'
import {
  type CommandActivity,
  ComputeError,
  type ExecCommand,
  type Execution,
  type FaultInjection,
  NO_ACTIVITY,
  type ProcessSignal,
  type Sandbox,
  type ServerProcess,
  type SignalOutcome,
  type TerminalCommand,
  type TerminalExecution,
} from '../sandbox.ts'
import type { SandboxdClient } from './client.ts'
import type { SandboxdCommand, SandboxdExecution } from './client-execution.ts'
import { ProcessList } from './process-list.ts'

/** Holds a server to its storage limit while commands run. */
export interface StorageWatch {
  /** Looks regularly from now on, until nothing runs. */
  wake(): void
  /** Makes the storage count as full, or by its limit again. */
  fill(full: boolean): Promise<void>
}

/** The limits of a sandbox, as faults need to know them. */
export interface FaultLimits {
  readonly limits: Limits
  /** The mechanism that enforces the memory limit. */
  readonly memoryEnforcedBy: string
}

/** Causes faults in a sandbox, wherever it is. */
export abstract class SandboxFaults implements FaultInjection {
  readonly memory: FaultInjection['memory']
  readonly storage: FaultInjection['storage']
  readonly fillStorage: FaultInjection['fillStorage']

  protected constructor(
    { limits, memoryEnforcedBy }: FaultLimits,
    fillStorage: FaultInjection['fillStorage'],
  ) {
    this.memory = { limit: limits.memoryBytes, enforcedBy: memoryEnforcedBy }
    this.storage = { limit: limits.storageBytes }
    this.fillStorage = fillStorage
  }

  abstract crash(): void
  abstract freeze(): Promise<void>
  abstract thaw(): void
}

/** What sandboxes have in common, wherever they are: their sandboxd runs the commands and ends in order. */
export abstract class SandboxBase
  implements Pick<Sandbox, 'exec' | 'terminal' | 'processes' | 'signal' | 'stop' | 'ending' | 'exited'>
{
  abstract readonly exited: Promise<{ reason: string }>
  protected readonly sandboxd: SandboxdClient
  readonly #processes: ProcessList
  readonly #stopMarginMs: number
  #stopping: Promise<void> | null = null
  #storageWatch: StorageWatch | null = null

  /** @param stopMarginMs milliseconds beyond the grace of its commands in which sandboxd has to end */
  protected constructor(sandboxd: SandboxdClient, stopMarginMs: number) {
    this.sandboxd = sandboxd
    this.#processes = new ProcessList(sandboxd)
    this.#stopMarginMs = stopMarginMs
  }

  /** Has its storage watched from now on. */
  watchStorage(watch: StorageWatch): void {
    this.#storageWatch = watch
  }

  /** See `FaultInjection.fillStorage`. */
  protected async fillStorage(full: boolean): Promise<void> {
    await this.#storageWatch?.fill(full)
  }

  /** Starts a command. */
  protected begin(command: SandboxdCommand): SandboxdExecution {
    return this.sandboxd.exec(command)
  }

  /** See `Execution.activity`, of a command that runs. */
  protected abstract activity(execution: SandboxdExecution): Promise<CommandActivity>

  /** Ends every process that commands have started until now. */
  protected abstract killStarted(): Promise<void>

  get ending(): boolean {
    return this.isStopping || this.sandboxd.over
  }

  /** Whether `stop` was called. */
  protected get isStopping(): boolean {
    return this.#stopping !== null
  }

  exec(command: ExecCommand): Execution {
    return this.#execute(command)
  }

  terminal({ size, onOutput, ...command }: TerminalCommand): TerminalExecution {
    return this.#execute({ ...command, terminal: size, onOutput: (_, data) => onOutput(data) })
  }

  #execute(command: SandboxdCommand): TerminalExecution {
    if (this.isStopping) throw new ComputeError('The server is being stopped.')
    const execution = this.begin(command)
    if (command.owner !== undefined) this.#processes.add(execution, command.owner)
    this.#storageWatch?.wake()
    return {
      exit: execution.exit,
      pid: execution.pid,
      cancel: (graceMs) => execution.cancel(graceMs),
      activity: async () => (execution.over ? NO_ACTIVITY : this.activity(execution)),
      get unread() {
        return execution.unread
      },
      write: (data) => execution.type(data),
      hangUp: () => execution.hangUp(),
      resize: (size) => execution.resize(size),
    }
  }

  processes(): Promise<ServerProcess[]> {
    return this.#processes.read()
  }

  signal(pid: number, name: ProcessSignal): Promise<SignalOutcome> {
    return this.#processes.signal(pid, name)
  }

  /**
   * Ends everything that commands have started, in the background too. Writes the reason to the standard error of
   * running commands.
   */
  async endProcesses(reason: string): Promise<void> {
    for (const execution of this.sandboxd.executions) execution.note(reason)
    await this.killStarted()
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.sandboxd.shutdown()
    const timer = setTimeout(() => this.sandboxd.close('It was stopped.'), GRACE_MS + this.#stopMarginMs)
    await this.exited
    clearTimeout(timer)
  }
}
