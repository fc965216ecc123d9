/** Lets some of many run at a time; the others wait in the order in which they came. */
export class Slots {
  readonly #waiting: Array<() => void> = []
  #free: number

  /** @param count how many run at a time */
  constructor(count: number) {
    this.#free = count
  }

  /** Runs something as soon as there is a slot for it; returns or throws what it does. */
  async run<T>(act: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await act()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
