/**
 * Results of reads, kept until anything in the database changes. One process writes, through one
 * connection, so that its count of changes tells exactly when a result is old.
 */
export class ReadCache<Result> {
  readonly #version: () => number
  readonly #results = new Map<string, Result>()
  #seen = -1

  /** @param version `Database.version` */
  constructor(version: () => number) {
    this.#version = version
  }

  /** The result for `key`, from `read` where there is none or it is old. */
  get(key: string, read: () => Result): Result {
    const version = this.#version()
    if (version !== this.#seen) {
      this.#results.clear()
      this.#seen = version
    }
    const kept = this.#results.get(key)
    if (kept !== undefined) return kept
    const result = read()
    // What is not there is not kept: anybody could fill the memory by asking for it.
    if (result !== undefined && result !== null) this.#results.set(key, result)
    return result
  }
}
