/** Runs calls with the same key one after the other, in the order of arrival. Different keys run concurrently. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Runs `call` after every earlier call for `key`, and returns or throws what it does. */
  run<T>(key: string, call: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const turn = before ? before.then(call, call) : call()
    const tail = turn
      .catch(() => {})
      .finally(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key)
      })
    this.#tails.set(key, tail)
    return turn
  }
}

/** Runs a function with the latest value only: of several calls during a run, the last one runs after it. */
export class LatestOnly<T> {
  readonly #run: (value: T) => Promise<void>
  /** The runs under way, with the value of the one that follows, if any. */
  #running: { next: { value: T } | null; done: Promise<void> } | null = null

  constructor(run: (value: T) => Promise<void>) {
    this.#run = run
  }

  /**
   * Runs with a value, now or after the run under way. Resolves when no run follows.
   *
   * @throws the error of the last run
   */
  run(value: T): Promise<void> {
    if (this.#running !== null) {
      this.#running.next = { value }
      return this.#running.done
    }
    const running: { next: { value: T } | null; done: Promise<void> } = {
      next: { value },
      done: Promise.resolve(),
    }
    this.#running = running
    running.done = this.#runAll(running).finally(() => {
      this.#running = null
    })
    return running.done
  }

  async #runAll(running: { next: { value: T } | null }): Promise<void> {
    for (let current = running.next; current !== null; current = running.next) {
      running.next = null
      try {
        await this.#run(current.value)
      } catch (error) {
        if (running.next === null) throw error
      }
    }
  }
}
