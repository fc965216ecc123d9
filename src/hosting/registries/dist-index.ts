import type { DiskCache } from './disk.ts'
import type { Dist, Dists } from './wanted.ts'

/** Number of packages whose files are kept in memory. */
const IN_MEMORY = 300

/**
 * The hashes of all files in a registry's documents seen so far. An entry stays until a newer document replaces
 * it.
 */
export class DistIndex {
  readonly #disk: DiskCache
  readonly #registry: string
  readonly #recent = new Map<string, Dists>()

  /** @param registry the registry's name in the cache */
  constructor(disk: DiskCache, registry: string) {
    this.#disk = disk
    this.#registry = registry
  }

  /**
   * Returns a file's source and hash. If no document seen so far has it, asks for what `fill` returns, or adds by itself.
   * Returns null if that does not have it either.
   */
  async find(name: string, file: string, fill: () => Promise<Dists | null>): Promise<Dist | null> {
    const known = own(await this.#read(name), file)
    if (known !== null) return known
    const dists = await fill()
    if (dists !== null) await this.add(name, dists)
    return own(await this.#read(name), file)
  }

  /** Adds the files of a document. */
  async add(name: string, dists: Dists): Promise<void> {
    const all = { ...(await this.#read(name)), ...dists }
    this.#remember(name, all)
    await this.#disk.write('dists', this.#key(name), new TextEncoder().encode(JSON.stringify(all)))
  }

  /** Forgets a package whose records turned out to be wrong. */
  async forget(name: string): Promise<void> {
    this.#recent.delete(name)
    await this.#disk.remove('dists', this.#key(name))
  }

  #key(name: string): string {
    return `${this.#registry} ${name}`
  }

  async #read(name: string): Promise<Dists> {
    const recent = this.#recent.get(name)
    if (recent !== undefined) return recent
    const found = await this.#disk.read('dists', this.#key(name))
    const dists = found === null ? {} : parse(found.bytes)
    this.#remember(name, dists)
    return dists
  }

  #remember(name: string, dists: Dists): void {
    this.#recent.delete(name)
    this.#recent.set(name, dists)
    const [oldest] = this.#recent.keys()
    if (this.#recent.size > IN_MEMORY && oldest !== undefined) this.#recent.delete(oldest)
  }
}

const own = (dists: Dists, file: string): Dist | null =>
  Object.hasOwn(dists, file) ? (dists[file] ?? null) : null

/** Parses a cached index. A damaged one counts as empty. */
function parse(bytes: Uint8Array): Dists {
  try {
    const dists = JSON.parse(new TextDecoder().decode(bytes))
    return typeof dists === 'object' && dists !== null ? dists : {}
  } catch {
    return {}
  }
}
