/**
 * Admits each key once in a period, and a bounded number of keys: what is repeated in a loop is reported now and then,
 * and cannot flood a log.
 */
export class OncePerPeriod {
  readonly #periodMs: number
  readonly #most: number
  readonly #admitted = new Set<string>()
  #began = 0

  /**
   * @param periodMs length of a period in milliseconds; `Infinity` for one that does not end
   * @param most keys that are admitted in a period
   */
  constructor(periodMs: number, most: number) {
    this.#periodMs = periodMs
    this.#most = most
  }

  /** Reports whether a key is admitted now. */
  admits(key: string): boolean {
    const now = performance.now()
    if (now - this.#began >= this.#periodMs) {
      this.#admitted.clear()
      this.#began = now
    }
    if (this.#admitted.size >= this.#most || this.#admitted.has(key)) return false
    this.#admitted.add(key)
    return true
  }

  /** Begins a new period. */
  reset(): void {
    this.#admitted.clear()
  }
}
