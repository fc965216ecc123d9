/**
 * Caches results of reads until anything in the database changes. One process writes, through one connection, so its
 * count of changes is exact.
 */
export class ReadCache<Result> {
  readonly #version: () => number
  readonly #results = new Map<string, Result>()
  #seen = -1

  /** @param version `Database.version` */
  constructor(version: () => number) {
    this.#version = version
  }

  /** Returns the result for `key`, from `read` if there is none or it is old. */
  get(key: string, read: () => Result): Result {
    const version = this.#version()
    if (version !== this.#seen) {
      this.#results.clear()
      this.#seen = version
    }
    const kept = this.#results.get(key)
    if (kept !== undefined) return kept
    const result = read()
    // Missing rows are not cached: callers could fill the memory by asking for them.
    if (result !== undefined && result !== null) this.#results.set(key, result)
    return result
  }
}
