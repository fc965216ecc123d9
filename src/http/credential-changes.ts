/** Changes that are remembered. Who was let in before the oldest of them is asked who it is again. */
const REMEMBERED = 1_000

/**
 * Tells who works for a credential when that credential ends, or reaches something else: what it has under way was
 * begun with rights that nobody may count on any more.
 */
export class CredentialChanges {
  readonly #listeners = new Map<string, Set<() => void>>()
  /** The credentials of the last changes; that of change n lies at n modulo their number. */
  readonly #recent: string[] = []
  #count = 0

  /** How many changes there were: a moment that `hasChanged` counts from. */
  get count(): number {
    return this.#count
  }

  /** Whether a credential has changed since there were so many changes. Where nobody remembers, it may have. */
  hasChanged(credentialId: string, since: number): boolean {
    if (since === this.#count) return false
    if (this.#count - since > REMEMBERED) return true
    for (let n = since; n < this.#count; n++) if (this.#recent[n % REMEMBERED] === credentialId) return true
    return false
  }

  /**
   * A credential has changed, or will have when the transaction under way is over: it is synchronous, and what is
   * queued here runs behind it.
   */
  changed(credentialId: string): void {
    this.#recent[this.#count % REMEMBERED] = credentialId
    this.#count += 1
    if (this.#listeners.has(credentialId)) queueMicrotask(() => this.#tell(credentialId))
  }

  /**
   * Has `listener` called when a credential changes.
   *
   * @returns ends it
   */
  watch(credentialId: string, listener: () => void): () => void {
    const own = this.#listeners.get(credentialId) ?? new Set()
    this.#listeners.set(credentialId, own.add(listener))
    return () => {
      own.delete(listener)
      if (own.size === 0 && this.#listeners.get(credentialId) === own) this.#listeners.delete(credentialId)
    }
  }

  #tell(credentialId: string): void {
    for (const listener of [...(this.#listeners.get(credentialId) ?? [])]) listener()
  }
}
