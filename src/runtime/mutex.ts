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
