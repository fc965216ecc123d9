/** Runs calls for the same key one after the other, in the order they came; other keys go on side by side. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Runs `call` when every earlier call for `key` has ended, and returns or throws what it does. */
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
