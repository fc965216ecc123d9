/** Bytes that the cache of a site holds at most. */
const LIMIT = 8 * 1024 * 1024

/** A cache of small files' contents by their paths. Its user checks that a file has not changed since. */
export class ContentCache<Content extends { readonly size: number }> {
  readonly #kept = new Map<string, Content>()
  #size = 0

  get(path: string): Content | null {
    return this.#kept.get(path) ?? null
  }

  /** Adds a content; the oldest make room for it. */
  set(path: string, content: Content): void {
    this.#drop(path)
    this.#kept.set(path, content)
    this.#size += content.size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= LIMIT) break
      this.#drop(oldest)
    }
  }

  #drop(path: string): void {
    this.#size -= this.#kept.get(path)?.size ?? 0
    this.#kept.delete(path)
  }
}
