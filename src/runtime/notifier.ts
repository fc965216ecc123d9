/**
 * Tells whoever waits that there may be news, after the transaction that brings it. It says no more: a listener
 * looks for itself, since several news may come as one.
 */
export class Notifier {
  readonly #listeners = new Set<() => void>()
  #scheduled = false

  /** There is news, or will be when the transaction under way is over: it is synchronous, and what is queued here runs behind it. */
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
   * @returns ends it
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
