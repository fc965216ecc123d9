/** Work that is under way once, however many ask for it. */
export class SharedCalls<T> {
  readonly #pending = new Map<string, Promise<T>>()

  /** Starts the work, or joins it. */
  get(key: string, start: () => Promise<T>): Promise<T> {
    const pending = this.#pending.get(key)
    if (pending !== undefined) return pending
    const started = start().finally(() => this.#pending.delete(key))
    this.#pending.set(key, started)
    return started
  }

  /** Resolves when nothing is under way any more. */
  async drain(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending.values())
  }
}
