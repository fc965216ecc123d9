import type { FaultInjection, Limits } from '../driver.ts'
import { signal } from '../terminate.ts'

/** Most rounds of stopping processes that started meanwhile. */
const ROUNDS = 50

/** The options of a `LocalFaultInjection`. */
export interface LocalFaultOptions {
  /** The process that the sandbox ends with. */
  pid: number
  /** Returns all that commands have started. */
  started(): number[]
  /** Resolves when sandboxd has acted on everything it was sent before. */
  drained(): Promise<void>
  limits: Limits
  /** The mechanism that enforces the memory limit. */
  memoryHeldBy: string
}

/** Causes faults in a sandbox on this machine, by signals and through its disk watch. */
export class LocalFaultInjection implements FaultInjection {
  readonly #options: LocalFaultOptions
  /** The watch over its storage. */
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
