import { within } from '../../runtime/wait.ts'
import type { AppAddress } from './health.ts'
import { AppError } from './plan.ts'
import { AppProcess, type AppProgram, type ProcessOptions } from './process.ts'
import type { Drained, SupervisorOptions, SupervisorTiming } from './supervision.ts'

/** Grace period of a process that did not become healthy, in milliseconds. */
const FAILED_GRACE_MS = 2000

/** What the log says of an app that listens on another port than the one it was given. */
const IGNORES_PORT =
  'That is not the port in the variable PORT. Let the app listen on that one, so that its next version can start beside this one.'

/** A process that responds. */
export interface RunningProcess {
  readonly process: AppProcess
  readonly program: AppProgram
  /** Another one if an app that ignored PORT responds there after all; null for a worker. */
  address: AppAddress | null
}

/** Starts and ends the processes of one app, and tracks each until it is gone. */
export class AppProcesses {
  readonly #options: SupervisorOptions
  readonly #timing: SupervisorTiming
  readonly #all = new Set<AppProcess>()

  constructor(options: SupervisorOptions, timing: SupervisorTiming) {
    this.#options = options
    this.#timing = timing
  }

  /**
   * Starts a process and waits until it responds. If it does not, ends it before it throws.
   *
   * @param onChecked see `AppProcess.waitUntilHealthy`
   * @param yields see there
   * @throws AppFailure, AppError; the signal's reason
   */
  async launch(
    program: AppProgram,
    signal: AbortSignal,
    onChecked?: () => void,
    yields?: boolean,
  ): Promise<RunningProcess> {
    const { sandbox, log } = this.#options
    signal.throwIfAborted()
    if (sandbox.ending) throw serverStoppedError()
    const { worker, shown } = program
    log.append('berth', worker === null ? `Starts: ${shown}` : `Starts the worker "${worker}": ${shown}`)
    const process = await this.#start(program, signal)
    try {
      const address = await process.waitUntilHealthy(signal, onChecked, yields)
      if (address !== null) log.append('berth', `Answers on port ${address.port}.`)
      if (address !== null && address.port !== process.port) log.append('berth', IGNORES_PORT)
      return { process, program, address }
    } catch (error) {
      await process.end(FAILED_GRACE_MS)
      if (sandbox.ending) throw serverStoppedError()
      throw error
    }
  }

  /** Ends a replaced process when its requests are served, or after a time limit. */
  async retire({ process, address }: RunningProcess, drained: Drained): Promise<void> {
    if (address !== null) {
      const idle = drained(address.port).catch(() => {})
      await within(this.#timing.drainMs, Promise.race([idle, process.exited]), undefined)
    }
    await process.end(this.#timing.graceMs)
    // What it printed at its end may look like a failure.
    this.#options.log.append('berth', 'The version before was ended.')
  }

  /** Ends all processes, including replaced ones with open requests; resolves when none is left. */
  async endAll(): Promise<void> {
    await Promise.all([...this.#all].map((process) => process.end(this.#timing.graceMs)))
  }

  async #start(program: AppProgram, signal: AbortSignal): Promise<AppProcess> {
    const { owner, sandbox, cwd, ports, log, clock, workspace, slugOf } = this.#options
    const port =
      program.worker !== null
        ? null
        : await (program.port === null ? ports.reserve(sandbox) : ports.claim(sandbox, program.port))
    const options: ProcessOptions = {
      ...{ owner, sandbox, cwd, program, port, log, clock, workspace, slugOf },
      timing: program.limitMs === null ? this.#timing : { ...this.#timing, limitMs: program.limitMs },
    }
    try {
      signal.throwIfAborted()
      const process = new AppProcess(options)
      this.#all.add(process)
      void process.exited.then(() => this.#all.delete(process))
      return process
    } catch (error) {
      port?.release()
      throw error
    }
  }
}

/** Returns the error of calls that the stop of the server interrupted. */
export const serverStoppedError = (): AppError => new AppError('The server was stopped.')
