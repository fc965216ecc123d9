/** Attempts that may be in their first second at a time. */
const WIDTH = 64

/** Attempts that may be under way in all. */
const MOST = 1_024

/** After this an attempt only waits for its receiver, which costs no more than a socket. */
const BUSY_MS = 1_000

/**
 * How many attempts may be under way. One that waits for its receiver gives its place to another, so
 * that even a great many receivers that do not answer hold up nobody else.
 */
export class Slots {
  readonly #onFree: () => void
  #busy = 0
  #all = 0

  /** @param onFree is called when a place becomes free while its attempt goes on */
  constructor(onFree: () => void) {
    this.#onFree = onFree
  }

  /** Whether another attempt may begin. */
  get free(): boolean {
    return this.#busy < WIDTH && this.#all < MOST
  }

  /** Takes a place; the returned function gives it back. */
  take(): () => void {
    this.#busy += 1
    this.#all += 1
    let busy = true
    const rest = () => {
      if (busy) this.#busy -= 1
      busy = false
    }
    const timer = setTimeout(() => {
      rest()
      this.#onFree()
    }, BUSY_MS)
    return () => {
      clearTimeout(timer)
      rest()
      this.#all -= 1
    }
  }
}
