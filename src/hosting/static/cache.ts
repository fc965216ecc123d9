import type { KeptContent } from './content.ts'

/** Bytes that are kept of a site, at most. */
const LIMIT = 8 * 1024 * 1024

/** Contents of small files by their paths, those used last. Whoever takes one sees to it that the file is still the same. */
export class ContentCache {
  readonly #kept = new Map<string, KeptContent>()
  #size = 0

  get(path: string): KeptContent | null {
    return this.#kept.get(path) ?? null
  }

  /** Keeps a content in place of those that were kept for longest. */
  set(path: string, content: KeptContent): void {
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
