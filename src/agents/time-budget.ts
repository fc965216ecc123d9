import { LONGEST_TIMER_MS } from '../runtime/wait.ts'

/**
 * A limited time that can be paused. It is the system's time, not that of berth's clock: with a stopped clock, work
 * would never end.
 */
export class TimeBudget {
  readonly #onOver: () => void
  #left: number
  #since: number | null = null
  #timer: Timer | undefined

  /**
   * Creates a paused budget.
   *
   * @param ms milliseconds of the budget
   * @param onOver called once when the time has run out
   */
  constructor(ms: number, onOver: () => void) {
    this.#left = ms
    this.#onOver = onOver
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    const used = this.#since === null ? 0 : performance.now() - this.#since
    return Math.max(this.#left - used, 0)
  }

  /** Lets the time run. */
  run(): void {
    if (this.#since !== null) return
    this.#since = performance.now()
    this.#wait()
  }

  /** Stops the time. */
  pause(): void {
    if (this.#since === null) return
    clearTimeout(this.#timer)
    this.#left = this.leftMs
    this.#since = null
  }

  #wait(): void {
    const left = this.leftMs
    if (left <= LONGEST_TIMER_MS) this.#timer = setTimeout(this.#onOver, left)
    else this.#timer = setTimeout(() => this.#wait(), LONGEST_TIMER_MS)
  }
}
