/** Counts what is about to begin, by key, so that a limit holds before there is a record of it. */
export class PendingCounts {
  readonly #counts = new Map<string, number>()

  /** Returns how many of a key are pending. */
  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  /** Counts one more of a key, until the returned function is called; further calls do nothing. */
  add(key: string): () => void {
    this.#counts.set(key, this.of(key) + 1)
    let isPending = true
    return () => {
      if (!isPending) return
      isPending = false
      const left = this.of(key) - 1
      if (left > 0) this.#counts.set(key, left)
      else this.#counts.delete(key)
    }
  }
}
