import type { FaultInjection, Limits } from '../driver.ts'
import { signal } from '../terminate.ts'

/** Rounds of stopping newcomers before those that still come are left. */
const ROUNDS = 50

/** What the faults of a sandbox on this machine are made of. */
export interface LocalFaultOptions {
  /** The process that the sandbox ends with. */
  pid: number
  /** All that commands have started. */
  started(): number[]
  /** Resolves when sandboxd has acted on whatever it was sent before. */
  drained(): Promise<void>
  limits: Limits
  /** What holds it to its memory. */
  memoryHeldBy: string
}

/** What can be made to go wrong in a sandbox on this machine: signals, and the watch over its storage. */
export class LocalFaultInjection implements FaultInjection {
  readonly #options: LocalFaultOptions
  /** What watches over its storage. */
  storageWatch: { fill(full: boolean): Promise<void> } | null = null

  constructor(parts: LocalFaultOptions) {
    this.#options = parts
  }

  get memory(): FaultInjection['memory'] {
    const { limits, memoryHeldBy } = this.#options
    return { limit: limits.memoryBytes, enforcedBy: memoryHeldBy }
  }

  get storage(): FaultInjection['storage'] {
    return { limit: this.#options.limits.storageBytes }
  }

  crash(): void {
    signal(this.#options.pid, 'SIGKILL')
  }

  async freeze(): Promise<void> {
    await this.#options.drained()
    const stopped = new Set<number>()
    for (let round = 0; round < ROUNDS; round += 1) {
      const fresh = this.#options.started().filter((pid) => !stopped.has(pid))
      if (fresh.length === 0) return
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        stopped.add(pid)
      }
    }
  }

  thaw(): void {
    for (const pid of this.#options.started()) signal(pid, 'SIGCONT')
  }

  async fillStorage(full: boolean): Promise<void> {
    await this.storageWatch?.fill(full)
  }
}
