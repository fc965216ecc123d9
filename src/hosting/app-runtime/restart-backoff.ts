import type { Clock } from '../../runtime/clock.ts'
import { MAX_RESTARTS } from './supervision.ts'

/** The time in which `MAX_RESTARTS` are counted, in milliseconds. */
const WINDOW_MS = 5 * 60_000

/** Delay of the first restart, in milliseconds. It doubles with each. */
const FIRST_DELAY_MS = 1000

/** Decides when an app that crashed is started again: after 1 s, 2 s, 4 s …, at most 5 times in 5 minutes. */
export class RestartBackoff {
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
