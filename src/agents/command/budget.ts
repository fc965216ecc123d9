/** Longest time that a timer can be set to. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Time that can be stopped, in which something must be done. */
export class TimeBudget {
  readonly #onOver: () => void
  #left: number
  #since: number | null = null
  #timer: Timer | undefined

  /**
   * @param ms milliseconds of the budget
   * @param onOver called once when the time has run out
   */
  constructor(ms: number, onOver: () => void) {
    this.#left = ms
    this.#onOver = onOver
  }

  /** Time runs. */
  run(): void {
    if (this.#since !== null) return
    this.#since = performance.now()
    this.#wait()
  }

  /** Stops the time. */
  pause(): void {
    if (this.#since === null) return
    clearTimeout(this.#timer)
    this.#left = Math.max(this.#left - (performance.now() - this.#since), 0)
    this.#since = null
  }

  #wait(): void {
    const left = this.#left - (performance.now() - (this.#since ?? 0))
    if (left <= MAX_TIMER_MS) this.#timer = setTimeout(this.#onOver, left)
    else this.#timer = setTimeout(() => this.#wait(), MAX_TIMER_MS)
  }
}
