import type { Clock } from '../../src/runtime/clock.ts'

/** A clock that moves when it is told to; what falls due on the way runs in order. */
export class MovedClock implements Clock {
  #now: number
  readonly #timers = new Set<{ at: number; call: () => void }>()

  constructor(now = Date.UTC(2030, 0, 1)) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  after(ms: number, call: () => void) {
    const timer = { at: this.#now + ms, call }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  /** Moves on by `ms`, running every timer that falls due. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      if (!next) break
      this.#timers.delete(next)
      this.#now = next.at
      next.call()
    }
    this.#now = end
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size
  }
}
