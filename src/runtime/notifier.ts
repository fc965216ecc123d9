/**
 * Notifies listeners of changes, after the transaction that makes them. It carries no data: a listener reads the
 * state itself, because several changes may be notified as one.
 */
export class Notifier {
  readonly #listeners = new Set<() => void>()
  #scheduled = false

  /** Schedules a notification. Transactions are synchronous, so the queued call runs after the current one. */
  notify(): void {
    if (this.#scheduled || this.#listeners.size === 0) return
    this.#scheduled = true
    queueMicrotask(() => {
      this.#scheduled = false
      for (const listener of this.#listeners) listener()
    })
  }

  /**
   * Has `listener` called when there is news.
   *
   * @returns a function that ends this
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
