/** Sizes that are applied at once. A person who drags a window sends fewer in a second. */
const BURST = 20

/** Milliseconds after which one more is. */
const PAUSE_MS = 50

/**
 * Applies a size as often as it changes, but not without end: each time the screen is laid out anew and the program is
 * told, which takes longer than sending the size. Of sizes that follow each other too fast the last one is applied.
 */
export class ResizePace {
  readonly #apply: () => void
  #left = BURST
  #countedAt = performance.now()
  #timer: Timer | undefined

  /** @param apply called when the newest size is to be applied */
  constructor(apply: () => void) {
    this.#apply = apply
  }

  /** Has the size applied, now or soon. */
  request(): void {
    if (this.#timer !== undefined) return
    const now = performance.now()
    this.#left = Math.min(BURST, this.#left + (now - this.#countedAt) / PAUSE_MS)
    this.#countedAt = now
    if (this.#left >= 1) {
      this.#left -= 1
      this.#apply()
      return
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.request()
    }, PAUSE_MS)
    this.#timer.unref()
  }

  /** Applies no more. */
  stop(): void {
    clearTimeout(this.#timer)
  }
}
