import type { Limits, Mishaps } from '../driver.ts'
import { signal } from '../terminate.ts'

/** Rounds of stopping newcomers before those that still come are left. */
const ROUNDS = 50

/** What the mishaps of a sandbox on this machine are made of. */
export interface LocalMishapParts {
  /** The process that the sandbox ends with. */
  pid: number
  /** All that commands have started. */
  started(): number[]
  /** Resolves when the agent has acted on whatever it was sent before. */
  caughtUp(): Promise<void>
  limits: Limits
  /** What holds it to its memory. */
  memoryHeldBy: string
}

/** What can be made to go wrong in a sandbox on this machine: signals, and the watch over its storage. */
export class LocalMishaps implements Mishaps {
  readonly #parts: LocalMishapParts
  /** What watches over its storage. */
  storageWatch: { fill(full: boolean): Promise<void> } | null = null

  constructor(parts: LocalMishapParts) {
    this.#parts = parts
  }

  get memory(): Mishaps['memory'] {
    const { limits, memoryHeldBy } = this.#parts
    return { limit: limits.memoryBytes, enforcedBy: memoryHeldBy }
  }

  get storage(): Mishaps['storage'] {
    return { limit: this.#parts.limits.storageBytes }
  }

  crash(): void {
    signal(this.#parts.pid, 'SIGKILL')
  }

  async freeze(): Promise<void> {
    await this.#parts.caughtUp()
    const stopped = new Set<number>()
    for (let round = 0; round < ROUNDS; round += 1) {
      const fresh = this.#parts.started().filter((pid) => !stopped.has(pid))
      if (fresh.length === 0) return
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        stopped.add(pid)
      }
    }
  }

  thaw(): void {
    for (const pid of this.#parts.started()) signal(pid, 'SIGCONT')
  }

  async fillStorage(full: boolean): Promise<void> {
    await this.storageWatch?.fill(full)
  }
}
