import type {
  DialedConnection,
  DialHandlers,
  ExecCommand,
  Execution,
  FaultInjection,
  LoopbackHost,
  OutboundControl,
  ProcessSignal,
  Sandbox,
  ServerConsumption,
  ServerProcess,
  SignalOutcome,
  TerminalCommand,
  TerminalExecution,
} from '../../../compute/sandbox.ts'
import type { ActiveFaults } from './active.ts'

/** Modules and faults that are loaded with a sandbox's first fault. */
interface Loaded {
  faults: ActiveFaults
  delayed: typeof import('./delayed.ts')
  hogCommand: (memoryBytes: number) => string
}

/** A sandbox whose commands meet the faults that were set for it. */
export class FaultySandbox implements Sandbox {
  readonly #inner: Sandbox
  readonly #onFull: (full: boolean) => Promise<void>
  readonly #onChange: () => void
  readonly #check: () => void
  #loading: Promise<Loaded> | null = null
  #loaded: Loaded | null = null

  /**
   * @param check throws if the driver should fail in the calling work
   * @param onFull makes the storage count as full, or no longer
   * @param onChange called when one of its faults begins, applies or ends
   */
  constructor(
    inner: Sandbox,
    check: () => void,
    onFull: (full: boolean) => Promise<void>,
    onChange: () => void,
  ) {
    this.#inner = inner
    this.#check = check
    this.#onFull = onFull
    this.#onChange = onChange
  }

  /** The sandbox without its faults. */
  get withoutFaults(): Sandbox {
    return this.#inner
  }

  get handle(): Sandbox['handle'] {
    return this.#inner.handle
  }

  get ending(): boolean {
    return this.#inner.ending
  }

  get tools(): string {
    return this.#inner.tools
  }

  get caches(): string {
    return this.#inner.caches
  }

  get hasImage(): boolean {
    return this.#inner.hasImage ?? false
  }

  get refusesUnixSockets(): boolean {
    return this.#inner.refusesUnixSockets ?? false
  }

  get home(): string {
    return this.#inner.home
  }

  toolchains(...tool: Parameters<Sandbox['toolchains']>): ReturnType<Sandbox['toolchains']> {
    return this.#inner.toolchains(...tool)
  }

  get exited(): Promise<{ reason: string }> {
    return this.#inner.exited
  }

  get outboundControl(): OutboundControl | null {
    return this.#inner.outboundControl
  }

  get faultInjection(): FaultInjection {
    return this.#inner.faultInjection
  }

  get network(): Sandbox['network'] {
    return this.#inner.network
  }

  dial(port: number, host: LoopbackHost, handlers: DialHandlers): Promise<DialedConnection> {
    return this.#inner.dial(port, host, handlers)
  }

  forward(port: number): void {
    this.#inner.forward(port)
  }

  exec(command: ExecCommand): Execution {
    this.#check()
    return this.#startWithFaults(
      command,
      (faulty) => this.#inner.exec(faulty),
      (delay, begin, { DelayedExecution }) => new DelayedExecution(delay, begin),
    )
  }

  terminal(command: TerminalCommand): TerminalExecution {
    this.#check()
    return this.#startWithFaults(
      command,
      (faulty) => this.#inner.terminal(faulty),
      (delay, begin, { DelayedTerminal }) => new DelayedTerminal(delay, begin),
    )
  }

  processes(): Promise<ServerProcess[]> {
    return this.#inner.processes()
  }

  signal(pid: number, name: ProcessSignal): Promise<SignalOutcome> {
    return this.#inner.signal(pid, name)
  }

  consumption(): Promise<ServerConsumption> {
    return this.#inner.consumption()
  }

  pause(): Promise<() => void> {
    return this.#inner.pause()
  }

  stop(): Promise<void> {
    return this.#inner.stop()
  }

  /** The active faults; null if none was ever set. */
  get faults(): ActiveFaults | null {
    return this.#loaded?.faults ?? null
  }

  /** Returns the faults that last, to set one. */
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
    const faults = new ActiveFaults(this.#inner, this.#onFull, this.#onChange)
    return { faults, delayed, hogCommand }
  }

  #startWithFaults<Command extends { command: string }, Begun extends Execution>(
    command: Command,
    start: (command: Command) => Begun,
    later: (delay: Promise<void>, begin: () => Begun, delayed: Loaded['delayed']) => Begun,
  ): Begun {
    const loaded = this.#loaded
    if (loaded === null) return start(command)
    const begin = (): Begun => start({ ...command, command: this.#withActiveFaults(command.command, loaded) })
    const slow = loaded.faults.apply('slow_exec')
    if (slow === null) return begin()
    const timer = Promise.withResolvers<void>()
    const timeout = setTimeout(timer.resolve, slow.duration.delayMs ?? 0)
    const ends = [timer.promise, slow.over, this.exited]
    const delay = Promise.race(ends).then(() => clearTimeout(timeout))
    return later(delay, begin, loaded.delayed)
  }

  /** Returns the command with the effects of the active faults. */
  #withActiveFaults(command: string, { faults, hogCommand }: Loaded): string {
    const faulty = faults.apply('oom') === null ? command : hogCommand(this.faultInjection.memory.limit)
    return [
      // The shell stops itself, and continues when the fault ends.
      faults.has('hang') ? 'kill -STOP $$' : '',
      // No file can grow. Programs get the error EFBIG instead of a signal.
      faults.has('disk_full') ? "trap '' XFSZ; ulimit -f 0" : '',
      faulty,
    ]
      .filter(Boolean)
      .join('\n')
  }
}
