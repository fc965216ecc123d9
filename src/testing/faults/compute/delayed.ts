import {
  type CommandActivity,
  type ExecExit,
  type Execution,
  NO_ACTIVITY,
  type TerminalExecution,
  type TerminalSize,
} from '../../../compute/sandbox.ts'

/** How a command ends that was cancelled before it began: as by SIGTERM. */
const CANCELLED: ExecExit = { exitCode: 143, timedOut: false, truncated: false }

/** A command that begins later. */
export class DelayedExecution<Begun extends Execution = Execution> implements Execution {
  readonly exit: Promise<ExecExit>
  readonly pid: Promise<number | null>
  readonly #pid = Promise.withResolvers<number | null>()
  readonly #cancelled = Promise.withResolvers<ExecExit>()
  #begun: Begun | null = null
  #isCancelled = false

  /**
   * @param begin starts the command; an exception rejects `exit`
   */
  constructor(delay: Promise<void>, begin: () => Begun) {
    const run = async (): Promise<ExecExit> => {
      await delay
      if (this.#isCancelled) return CANCELLED
      this.#begun = begin()
      this.#begun.pid.then(this.#pid.resolve, this.#pid.reject)
      this.onBegun(this.#begun)
      return this.#begun.exit
    }
    this.exit = Promise.race([run(), this.#cancelled.promise])
    // The caller may not have begun to await it.
    this.exit.catch(() => {})
    this.pid = this.#pid.promise
    this.pid.catch(() => {})
    // One that is cancelled before it begins has no pid.
    this.exit.then(() => this.#pid.resolve(null), this.#pid.reject)
  }

  /** The command, once it has begun. */
  protected get begun(): Begun | null {
    return this.#begun
  }

  /** Called when the command has begun. */
  protected onBegun(_begun: Begun): void {}

  cancel(graceMs?: number): void {
    this.#begun?.cancel(graceMs)
    this.#isCancelled = true
    this.#cancelled.resolve(CANCELLED)
  }

  async activity(): Promise<CommandActivity> {
    return this.#begun === null ? NO_ACTIVITY : this.#begun.activity()
  }
}

/** A command on a terminal that begins later. Keeps typed input until then. */
export class DelayedTerminal extends DelayedExecution<TerminalExecution> implements TerminalExecution {
  readonly #typed: Uint8Array[] = []
  #size: TerminalSize | null = null

  get unread(): number {
    return this.begun?.unread ?? this.#typed.reduce((bytes, data) => bytes + data.length, 0)
  }

  protected override onBegun(begun: TerminalExecution): void {
    if (this.#size !== null) begun.resize(this.#size)
    for (const data of this.#typed.splice(0)) begun.write(data)
  }

  write(data: Uint8Array): void {
    if (this.begun === null) this.#typed.push(data)
    else this.begun.write(data)
  }

  hangUp(): void {
    if (this.begun === null) this.cancel()
    else this.begun.hangUp()
  }

  resize(size: TerminalSize): void {
    if (this.begun === null) this.#size = size
    else this.begun.resize(size)
  }
}
