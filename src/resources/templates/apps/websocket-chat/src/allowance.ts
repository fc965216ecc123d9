/** How often somebody may do something: so many times at once, then one more each interval. */
export class Allowance {
  #left: number
  #countedAt = performance.now()

  constructor(
    readonly atOnce: number,
    readonly intervalMs: number,
  ) {
    this.#left = atOnce
  }

  /** Whether it may be done now; if so, it counts as done. */
  take(): boolean {
    const now = performance.now()
    this.#left = Math.min(this.atOnce, this.#left + (now - this.#countedAt) / this.intervalMs)
    this.#countedAt = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
