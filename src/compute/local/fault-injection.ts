import type { FaultInjection } from '../sandbox.ts'
import { type FaultLimits, SandboxFaults } from '../sandboxd/sandbox-base.ts'
import { signal, stopAll } from '../terminate.ts'

/** The options of a `LocalFaultInjection`. */
interface LocalFaultOptions extends FaultLimits {
  /** The process that the sandbox ends with. */
  pid: number
  /** Returns all that commands have started. */
  started(): number[]
  /** Resolves when sandboxd has acted on everything it was sent before. */
  drained(): Promise<void>
  fillStorage: FaultInjection['fillStorage']
}

/** Causes faults in a sandbox on this machine, by signals and through its disk watch. */
export class LocalFaultInjection extends SandboxFaults {
  readonly #options: LocalFaultOptions

  constructor(options: LocalFaultOptions) {
    super(options, options.fillStorage)
    this.#options = options
  }

  crash(): void {
    signal(this.#options.pid, 'SIGKILL')
  }

  async freeze(): Promise<void> {
    await this.#options.drained()
    stopAll(this.#options.started)
  }

  thaw(): void {
    for (const pid of this.#options.started()) signal(pid, 'SIGCONT')
  }
}
