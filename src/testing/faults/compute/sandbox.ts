import type {
  ExecCommand,
  Execution,
  FaultInjection,
  Sandbox,
  TerminalCommand,
  TerminalExecution,
} from '../../../compute/driver.ts'
import type { ActiveFaults } from './active.ts'

/** What is loaded with the first fault of a sandbox. */
interface Loaded {
  faults: ActiveFaults
  delayed: typeof import('./delayed.ts')
  hogCommand: (memoryBytes: number) => string
}

/** A sandbox whose commands meet the faults that were set for it. */
export class FaultySandbox implements Sandbox {
  readonly #inner: Sandbox
  readonly #onFull: (full: boolean) => Promise<void>
  readonly #check: () => void
  #loading: Promise<Loaded> | null = null
  #loaded: Loaded | null = null

  /**
   * @param check throws where the driver is to fail in the work that asks
   * @param onFull has the storage count as full, or no more
   */
  constructor(inner: Sandbox, check: () => void, onFull: (full: boolean) => Promise<void>) {
    this.#inner = inner
    this.#check = check
    this.#onFull = onFull
  }

  /** The sandbox without its faults. */
  get bare(): Sandbox {
    return this.#inner
  }

  get ending(): boolean {
    return this.#inner.ending
  }

  get tools(): string {
    return this.#inner.tools
  }

  get home(): string {
    return this.#inner.home
  }

  get exited(): Promise<{ reason: string }> {
    return this.#inner.exited
  }

  get faultInjection(): FaultInjection {
    return this.#inner.faultInjection
  }

  exec(command: ExecCommand): Execution {
    this.#check()
    return this.#meeting(
      command,
      (met) => this.#inner.exec(met),
      (delay, begin, { DelayedExecution }) => new DelayedExecution(delay, begin),
    )
  }

  terminal(command: TerminalCommand): TerminalExecution {
    this.#check()
    return this.#meeting(
      command,
      (met) => this.#inner.terminal(met),
      (delay, begin, { DelayedTerminal }) => new DelayedTerminal(delay, begin),
    )
  }

  pause(): Promise<() => void> {
    return this.#inner.pause()
  }

  stop(): Promise<void> {
    return this.#inner.stop()
  }

  /** The faults that last, where any was ever set. */
  get faults(): ActiveFaults | null {
    return this.#loaded?.faults ?? null
  }

  /** The faults that last, to set one. */
  async openFaults(): Promise<ActiveFaults> {
    this.#loading ??= this.#load()
    this.#loaded = await this.#loading
    return this.#loaded.faults
  }

  async #load(): Promise<Loaded> {
    const [{ ActiveFaults }, delayed, { hogCommand }] = await Promise.all([
      import('./active.ts'),
      import('./delayed.ts'),
      import('./hog.ts'),
    ])
    return { faults: new ActiveFaults(this.#inner, this.#onFull), delayed, hogCommand }
  }

  #meeting<Command extends { command: string }, Begun extends Execution>(
    command: Command,
    start: (command: Command) => Begun,
    later: (delay: Promise<void>, begin: () => Begun, delayed: Loaded['delayed']) => Begun,
  ): Begun {
    const loaded = this.#loaded
    if (loaded === null) return start(command)
    const begin = (): Begun => start({ ...command, command: this.#commandNow(command.command, loaded) })
    const slow = loaded.faults.meet('slow_exec')
    if (slow === null) return begin()
    const timer = Promise.withResolvers<void>()
    const timeout = setTimeout(timer.resolve, slow.lasting.delayMs ?? 0)
    const ends = [timer.promise, slow.over, this.exited]
    const delay = Promise.race(ends).then(() => clearTimeout(timeout))
    return later(delay, begin, loaded.delayed)
  }

  /** What is run in place of a command, as the faults have it that last now. */
  #commandNow(command: string, { faults, hogCommand }: Loaded): string {
    const met = faults.meet('oom') === null ? command : hogCommand(this.faultInjection.memory.limit)
    return [
      // Its shell stops itself, and goes on when the fault is over.
      faults.has('hang') ? 'kill -STOP $$' : '',
      // No file can grow, and whoever tries learns it as an error of the system (EFBIG) instead of a signal.
      faults.has('disk_full') ? "trap '' XFSZ; ulimit -f 0" : '',
      met,
    ]
      .filter(Boolean)
      .join('\n')
  }
}
