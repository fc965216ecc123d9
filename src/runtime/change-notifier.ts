/** Says which object has changed, without the object. */
export interface NotifiedChange<Type extends string = string> {
  readonly type: Type
  readonly id: string
  /** The account that it belongs to; null if it belongs to the instance. */
  readonly accountId: string | null
  /** The server that it lies on; null if it lies on none. */
  readonly serverId: string | null
}

/** Receives a change inside the transaction that makes it. It may only take a note: the change may yet be undone. */
export type Watcher<Type extends string> = (change: NotifiedChange<Type>) => void

/**
 * Notifies of changed objects: watchers of every single one, listeners that something has changed. A notification that
 * nobody watches allocates nothing.
 */
export class ChangeNotifier<Type extends string> {
  readonly #any = new Notifier()
  /** By account; null for those of all accounts. */
  readonly #watchers = new Map<string | null, Set<Watcher<Type>>>()

  /** Reports whether the changes of an account are watched. */
  isWatched(accountId: string): boolean {
    return this.#watchers.size > 0 && (this.#watchers.has(accountId) || this.#watchers.has(null))
  }

  /**
   * Notifies that an object was added, has changed or was removed. Call it inside the transaction, or after it.
   *
   * @param accountId null for an object of the instance, which only watchers of all accounts see
   */
  notify(type: Type, id: string, accountId: string | null, serverId: string | null = null): void {
    this.#any.notify()
    if (this.#watchers.size === 0) return
    const own = accountId === null ? undefined : this.#watchers.get(accountId)
    const all = this.#watchers.get(null)
    if (own === undefined && all === undefined) return
    const change = { type, id, accountId, serverId }
    if (own !== undefined) for (const watcher of own) watcher(change)
    if (all !== undefined) for (const watcher of all) watcher(change)
  }

  /** Has `listener` called after transactions that change something. @returns a function that ends this */
  subscribe(listener: () => void): () => void {
    return this.#any.subscribe(listener)
  }

  /** Passes every change of an account to a watcher; of all accounts for null. @returns a function that ends this */
  watch(accountId: string | null, watcher: Watcher<Type>): () => void {
    const watchers = this.#watchers.get(accountId) ?? new Set()
    this.#watchers.set(accountId, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#watchers.get(accountId) === watchers) this.#watchers.delete(accountId)
    }
  }
}

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
