import type { Sandbox } from '../../compute/sandbox.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { once } from '../../runtime/once.ts'
import { PORT_TAKEN } from './failure-hints.ts'
import { AppError, AppFailure, type AppPlan, type ProcessEnd, summaryOf } from './plan.ts'
import { type AppProgram, toProgram } from './process.ts'
import { AppProcesses, type RunningProcess, serverStoppedError } from './processes.ts'
import {
  type AppCrash,
  type Drained,
  MAX_RESTARTS,
  type ProgramState,
  type StartOptions,
  SUPERVISOR_TIMING,
  type SupervisorOptions,
  type SupervisorTiming,
} from './supervision.ts'

/** The time in which `MAX_RESTARTS` are counted, in milliseconds. */
const WINDOW_MS = 5 * 60_000

/** Delay of the first restart, in milliseconds. It doubles with each. */
const FIRST_DELAY_MS = 1000

/** Kinds of operations. Only one runs at a time. */
type Operation = 'start' | 'restart' | 'stop'

/**
 * Keeps one app, or one worker, running in one sandbox: starts it, restarts it after a crash, replaces its version
 * without a gap, stops it. Calls take effect one after the other; `stop` interrupts the current one.
 */
export class AppSupervisor {
  readonly #options: SupervisorOptions
  readonly #timing: SupervisorTiming
  readonly #restarts: RestartBackoff
  readonly #processes: AppProcesses
  #state: ProgramState = { kind: 'stopped' }
  #running: RunningProcess | null = null
  /** The running process while another version starts beside it. */
  #replaced: RunningProcess | null = null
  #timer: Timer | null = null
  #crash: AppCrash | null = null
  #queue: Promise<unknown> = Promise.resolve()
  #current: { abort: AbortController; kind: Operation } | null = null
  #stops = 0

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#timing = { ...SUPERVISOR_TIMING, ...options.timing }
    this.#processes = new AppProcesses(options, this.#timing)
    this.#restarts = new RestartBackoff(options.clock)
    void options.sandbox.exited.then(() => this.#handleSandboxExit())
  }

  /** Sandbox that the app runs in. */
  get sandbox(): Sandbox {
    return this.#options.sandbox
  }

  /** State of the app. */
  get state(): ProgramState {
    return this.#state
  }

  /** Why the app does not respond any more, after it did; null if it responds, never did, or was stopped. */
  get crash(): AppCrash | null {
    return this.#crash
  }

  /** How often the version was started again after a crash. */
  get restarts(): number {
    return this.#restarts.all
  }

  /**
   * Starts the app; resolves when it responds. Replaces one that runs.
   *
   * @throws AppFailure with the end of its output if it does not respond; AppError if it cannot be tried, or was
   * stopped meanwhile
   */
  start(plan: AppPlan, env: Readonly<Record<string, string>>): Promise<void> {
    return this.replace(plan, env, () => Promise.resolve())
  }

  /**
   * Replaces the running version. The new one starts beside it and takes over when it responds; then the old one is
   * ended, once `drained` has resolved or after 10 s. If the new one does not respond, the old one stays. An app that
   * responds on a port of its own cannot run twice: the old one is ended first, and started again if the new one fails.
   * So is an old one that turns out to hold another port that the new one needs.
   *
   * @throws as `start`; the reason of `withdrawn`
   */
  replace(
    plan: AppPlan,
    env: Readonly<Record<string, string>>,
    drained: Drained,
    options: Partial<StartOptions> = {},
  ): Promise<void> {
    const program = toProgram(plan, env)
    this.#interruptRestart()
    return this.#enqueue('start', (signal) => {
      options.withdrawn?.throwIfAborted()
      return this.#replace(program, drained, signal, options)
    })
  }

  /**
   * Starts a worker when the version before has ended, so there are never two. Resolves when it has run for 2 s. One that
   * ends with exit code 0 has done its work, at any time.
   *
   * @param isOnlyTry whether it is not started again if it ends earlier
   * @throws AppFailure if it ends earlier; AppError if it was stopped meanwhile
   */
  runWorker(program: AppProgram, isOnlyTry: boolean): Promise<void> {
    this.#interruptRestart()
    return this.#enqueue('start', async (signal) => {
      this.#cancelRestart()
      this.#setState({ kind: 'starting' })
      if (this.#running !== null) await this.#endFirst(this.#running)
      this.#restarts.reset()
      try {
        this.#switchTo(await this.#processes.launch(program, signal))
      } catch (error) {
        if (signal.aborted || this.#options.sandbox.ending) throw error
        if (isOnlyTry) this.#giveUp(summaryOf(error), endOf(error))
        else this.#restartLater(program, summaryOf(error), endOf(error))
        throw error
      }
    })
  }

  /** Stops the app. Resolves when none of its processes is left. Calls under way fail. */
  stop(): Promise<void> {
    this.#stops += 1
    this.#current?.abort.abort(stopped())
    return this.#enqueue('stop', async () => {
      this.#cancelRestart()
      this.#running = null
      await this.#processes.endAll()
      this.#crash = null
      this.#setState({ kind: 'stopped' })
    })
  }

  async #replace(
    program: AppProgram,
    drained: Drained,
    signal: AbortSignal,
    { spawned, withdrawn, beforeFallback }: Partial<StartOptions>,
  ): Promise<void> {
    this.#cancelRestart()
    // A version that is tried a second time has been reported.
    const reportOnce = once(() => spawned?.())
    const old = this.#running
    let inTheWay = old !== null && excludes(old, program)
    if (old === null || inTheWay) this.#setState({ kind: 'starting' })
    if (old !== null && inTheWay) await this.#endFirst(old)
    this.#replaced = inTheWay ? null : old
    try {
      const ends = withdrawn === undefined ? signal : AbortSignal.any([signal, withdrawn])
      const yields = old !== null && !inTheWay && (await old.process.hasOtherPorts())
      const launched = this.#processes.launch(program, ends, reportOnce, yields)
      const next = await launched.catch(async (error: unknown) => {
        if (old === null || inTheWay || ends.aborted || !(await holdsPortWanted(old, error))) throw error
        inTheWay = true
        this.#replaced = null
        this.#log('The version before holds a port that this one needs too, so that is ended first.')
        this.#setState({ kind: 'starting' })
        await this.#endFirst(old)
        return this.#processes.launch(program, ends, reportOnce)
      })
      this.#replaced = null
      this.#restarts.reset()
      this.#switchTo(next)
      if (old !== null && !inTheWay) void this.#processes.retire(old, drained)
    } catch (error) {
      this.#replaced = null
      if (old === null && withdrawn?.aborted) this.#setState({ kind: 'stopped' })
      else {
        const reason = withdrawn?.aborted ? WITHDRAWN : summaryOf(error)
        await this.#afterFailure(inTheWay ? old : null, reason, beforeFallback, signal)
      }
      throw error
    }
  }

  /** Ends the version that runs, before another one starts. */
  async #endFirst(old: RunningProcess): Promise<void> {
    this.#running = null
    const { process, address } = old
    if (address !== null && address.port !== process.port) {
      this.#log(
        `Port ${address.port} is held by the version before, so that is ended first. An app that listens on the port in the variable PORT is replaced without a gap.`,
      )
    }
    await process.end(this.#timing.graceMs)
  }

  /** After a failed start, keeps or restarts the version that ran before. */
  async #afterFailure(
    before: RunningProcess | null,
    reason: string,
    beforeFallback: StartOptions['beforeFallback'] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted || this.#options.sandbox.ending) return
    const old = this.#running
    if (old !== null) {
      this.#log(`${reason} The version before goes on.`)
      if (old.process.hasEnded) this.#handleCrash(old, await old.process.exited)
      return
    }
    if (before === null) {
      this.#giveUp(reason)
      return
    }
    this.#log(`${reason} The version before is started again.`)
    try {
      await beforeFallback?.()
      this.#switchTo(await this.#processes.launch(before.program, signal))
    } catch (again) {
      if (!signal.aborted) this.#giveUp(summaryOf(again), endOf(again))
    }
  }

  #switchTo(next: RunningProcess): void {
    this.#running = next
    this.#crash = null
    const { address, process } = next
    this.#setState(address === null ? { kind: 'running' } : { kind: 'healthy', ...address })
    void process.exited.then((end) => this.#handleCrash(next, end))
    if (address !== null && address.port !== process.port) void this.#follow(next)
  }

  /** Passes requests to the port in PORT as soon as an app that responds on another one responds there too. */
  async #follow(running: RunningProcess): Promise<void> {
    const address = await running.process.waitForAssignedPort()
    if (address === null || this.#running !== running) return
    this.#log(`Answers on port ${address.port} now, the one in the variable PORT.`)
    running.address = address
    this.#setState({ kind: 'healthy', ...address })
  }

  #handleCrash(running: RunningProcess, end: ProcessEnd): void {
    if (this.#running !== running || this.#options.sandbox.ending) return
    // The result of the version that starts beside it decides.
    if (this.#replaced === running) {
      this.#setState({ kind: 'starting' })
      return
    }
    this.#running = null
    const { program } = running
    if (program.worker !== null && end.exitCode === 0) {
      this.#log(`${program.title} has ended with exit code 0, so it is not started again.`)
      this.#setState({ kind: 'ended' })
    } else this.#restartLater(program, `${program.title} crashed: ${end.reason}`, end)
  }

  /**
   * Starts a program again after a delay, or gives it up if it crashed too often.
   *
   * @param summary what happened, as a sentence
   */
  #restartLater(program: AppProgram, summary: string, end: ProcessEnd): void {
    const next = this.#restarts.next()
    if (next === null) {
      this.#giveUp(
        `${program.title} crashed again after ${MAX_RESTARTS} restarts in 5 minutes: ${end.reason}`,
        end,
      )
      return
    }
    const { delayMs, attempt } = next
    this.#log(`${summary} It is started again in ${delayMs / 1000} s (${attempt} of ${MAX_RESTARTS}).`)
    this.#noteCrash(end, { at: this.#options.clock.now() + delayMs, attempt })
    this.#setState({ kind: 'restarting', reason: end.reason, attempt, delayMs })
    const { clock, owner } = this.#options
    // It fails only if the app was stopped meanwhile: `#restart` handles failures of the app.
    const restart = (): Promise<void> =>
      this.#enqueue('restart', (signal) => this.#restart(program, timer, signal)).catch(() => {})
    const timer: Timer = clock.after(delayMs, restart, { name: `${owner.kind}.restart`, id: owner.id })
    this.#timer = timer
  }

  async #restart(program: AppProgram, timer: Timer, signal: AbortSignal): Promise<void> {
    // The restart was cancelled while it waited for its turn.
    if (this.#timer !== timer) return
    this.#timer = null
    this.#setState({ kind: 'starting' })
    try {
      this.#switchTo(await this.#processes.launch(program, signal))
    } catch (error) {
      if (!signal.aborted && !this.#options.sandbox.ending)
        this.#restartLater(program, summaryOf(error), endOf(error))
    }
  }

  /** Ends a restart under way. That of a version that is replaced need not finish. */
  #interruptRestart(): void {
    if (this.#current?.kind === 'restart') this.#current.abort.abort(stopped())
  }

  #cancelRestart(): void {
    this.#timer?.cancel()
    this.#timer = null
  }

  #noteCrash({ reason, exitCode }: ProcessEnd, restart: AppCrash['restart']): void {
    this.#crash = { reason, exitCode, since: this.#crash?.since ?? this.#options.clock.now(), restart }
  }

  /**
   * Starts the app no more.
   *
   * @param end of an app that ran before; without it, how it ended last is kept
   */
  #giveUp(reason: string, end: ProcessEnd | null = this.#crash): void {
    this.#running = null
    if (end !== null) this.#noteCrash(end, null)
    this.#log(reason)
    this.#setState({ kind: 'given_up', reason })
  }

  /** Handles the end of the sandbox, which ended all processes. */
  #handleSandboxExit(): void {
    this.#stops += 1
    this.#current?.abort.abort(serverStoppedError())
    this.#cancelRestart()
    this.#running = null
    this.#crash = null
    this.#setState({ kind: 'stopped' })
  }

  /** Runs work after all earlier work; throws if the app was stopped meanwhile. */
  #enqueue<T>(kind: Operation, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const stops = this.#stops
    const turn = this.#queue.then(async () => {
      if (kind !== 'stop' && stops !== this.#stops) throw stopped()
      const abort = new AbortController()
      this.#current = { abort, kind }
      try {
        return await work(abort.signal)
      } finally {
        this.#current = null
      }
    })
    this.#queue = turn.catch(() => {})
    return turn
  }

  #setState(state: ProgramState): void {
    if (this.#state.kind === state.kind && (state.kind === 'starting' || state.kind === 'stopped')) return
    this.#state = state
    this.#options.onState(state)
  }

  #log(text: string): void {
    this.#options.log.append('berth', text)
  }
}

/**
 * Reports whether a running version has to end before another one starts: a worker, or an app with a port that the other
 * one needs, a fixed one or one that it listens on in place of the one in PORT.
 */
const excludes = ({ process, address }: RunningProcess, next: AppProgram): boolean =>
  address === null || process.port === next.port || address.port !== process.port

/** Reports whether a version failed because the one that runs holds a port besides the one in PORT, as for metrics. */
const holdsPortWanted = async ({ process }: RunningProcess, error: unknown): Promise<boolean> =>
  error instanceof AppFailure &&
  error.log.some((line) => PORT_TAKEN.test(line)) &&
  (await process.hasOtherPorts())

/** Returns how the process of a failed start ended, or what failed instead. */
const endOf = (error: unknown): ProcessEnd =>
  (error instanceof AppFailure ? error.end : null) ?? { reason: summaryOf(error), exitCode: null }

/** Why a version does not start that is withdrawn, for a person. */
const WITHDRAWN = 'The start was given up, because another one follows.'

const stopped = (): AppError => new AppError('The app was stopped.')

/** Decides when an app that crashed is started again: after 1 s, 2 s, 4 s …, at most 5 times in 5 minutes. */
class RestartBackoff {
  readonly #clock: Clock
  #at: number[] = []
  #all = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Number of restarts of the version. */
  get all(): number {
    return this.#all
  }

  /**
   * Returns the delay of the next restart in milliseconds and its number within the 5 minutes; null if the limit is
   * reached.
   */
  next(): { delayMs: number; attempt: number } | null {
    const now = this.#clock.elapsed()
    this.#at = this.#at.filter((at) => now - at < WINDOW_MS)
    const before = this.#at.length
    if (before >= MAX_RESTARTS) return null
    const delayMs = FIRST_DELAY_MS * 2 ** before
    this.#at.push(now + delayMs)
    this.#all += 1
    return { delayMs, attempt: before + 1 }
  }

  /** Forgets earlier restarts, because another version runs. */
  reset(): void {
    this.#at = []
    this.#all = 0
  }
}
