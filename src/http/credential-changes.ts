/** Number of changes to remember. Callers authenticated before the oldest one are authenticated again. @bound system */
const MAX_REMEMBERED = 1_000

/**
 * Notifies listeners when a credential ends or its scope changes. Work in progress that began with its rights can
 * then stop.
 */
export class CredentialChanges {
  readonly #listeners = new Map<string, Set<() => void>>()
  /** A ring buffer with the credentials of the last changes. */
  readonly #recent: string[] = []
  #count = 0

  /** The number of changes so far. Pass it to `hasChanged` later. */
  get count(): number {
    return this.#count
  }

  /**
   * Reports whether a credential has changed since the count was `since`. Returns true if too many changes followed
   * to know.
   */
  hasChanged(credentialId: string, since: number): boolean {
    if (since === this.#count) return false
    if (this.#count - since > MAX_REMEMBERED) return true
    for (let n = since; n < this.#count; n++)
      if (this.#recent[n % MAX_REMEMBERED] === credentialId) return true
    return false
  }

  /**
   * Records the change of a credential. Call it inside the transaction: transactions are synchronous, so listeners
   * run after it.
   */
  notify(credentialId: string): void {
    this.#recent[this.#count % MAX_REMEMBERED] = credentialId
    this.#count += 1
    if (this.#listeners.has(credentialId)) queueMicrotask(() => this.#notifyListeners(credentialId))
  }

  /**
   * Calls `listener` when a credential changes.
   *
   * @returns a function that ends the subscription
   */
  subscribe(credentialId: string, listener: () => void): () => void {
    const own = this.#listeners.get(credentialId) ?? new Set()
    this.#listeners.set(credentialId, own.add(listener))
    return () => {
      own.delete(listener)
      if (own.size === 0 && this.#listeners.get(credentialId) === own) this.#listeners.delete(credentialId)
    }
  }

  #notifyListeners(credentialId: string): void {
    for (const listener of [...(this.#listeners.get(credentialId) ?? [])]) listener()
  }
}
