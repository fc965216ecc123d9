/** Shares one run of a job between all callers that ask for it meanwhile. */
export class SharedCalls<T> {
  readonly #pending = new Map<string, Promise<T>>()

  /** Starts the job of a key, or joins the one under way. */
  get(key: string, start: () => Promise<T>): Promise<T> {
    const pending = this.#pending.get(key)
    if (pending !== undefined) return pending
    const started = start().finally(() => this.#pending.delete(key))
    this.#pending.set(key, started)
    return started
  }

  /** Resolves when no job is under way. */
  async drain(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending.values())
  }
}
