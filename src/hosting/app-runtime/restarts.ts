import type { Clock } from '../../runtime/clock.ts'

/** Most restarts within the window of `WINDOW_MS` milliseconds. */
export const MOST_RESTARTS = 5
const WINDOW_MS = 5 * 60_000

/** The delay of the first, which doubles with each. */
const FIRST_DELAY_MS = 1000

/** Decides when an app that crashed is started again: after 1 s, 2 s, 4 s …, at most 5 times in 5 minutes. */
export class Restarts {
  readonly #clock: Clock
  #at: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns milliseconds until the next one, and which one of the 5 minutes it is; null if there were enough. */
  next(): { delayMs: number; attempt: number } | null {
    const now = this.#clock.elapsed()
    this.#at = this.#at.filter((at) => now - at < WINDOW_MS)
    const before = this.#at.length
    if (before >= MOST_RESTARTS) return null
    const delayMs = FIRST_DELAY_MS * 2 ** before
    this.#at.push(now + delayMs)
    return { delayMs, attempt: before + 1 }
  }

  /** Forgets those before: another version runs. */
  reset(): void {
    this.#at = []
  }
}
