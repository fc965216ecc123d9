import type { DiskCache } from './disk.ts'
import { type Dist, type Dists, readManifest, versionOf } from './document.ts'
import type { NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'

/** Number of packages whose tarballs are kept in memory. */
const IN_MEMORY = 300

/**
 * The hashes of all tarballs in the registry's documents seen so far. An entry stays until a newer document replaces
 * it.
 */
export class DistIndex {
  readonly #disk: DiskCache
  readonly #upstream: NpmRegistry
  readonly #recent = new Map<string, Dists>()

  constructor(disk: DiskCache, upstream: NpmRegistry) {
    this.#disk = disk
    this.#upstream = upstream
  }

  /**
   * Returns a tarball's source and hash. If no document seen so far has it, as for a version named by a lock file,
   * asks for that version's document, which is small.
   *
   * @throws PackageError if there is none
   */
  async find(name: string, file: string): Promise<Dist> {
    const known = (await this.#read(name))[file]
    if (known !== undefined) return known
    const version = versionOf(name, file)
    if (version === null) throw missing(name, file)
    const path = `/${name.replace('/', '%2f')}/${encodeURIComponent(version)}`
    const response = await this.#upstream.document(path, 'application/json', null)
    const document = response.kind === 'document' ? response.document : null
    const dists = readManifest(name, version, document)?.dists ?? {}
    const found = dists[file]
    if (found === undefined) throw missing(name, file)
    await this.add(name, dists)
    return found
  }

  /** Adds the tarballs of a document. */
  async add(name: string, dists: Dists): Promise<void> {
    const all = { ...(await this.#read(name)), ...dists }
    this.#remember(name, all)
    await this.#disk.write('dists', name, new TextEncoder().encode(JSON.stringify(all)))
  }

  /** Forgets a package whose records turned out to be wrong. */
  async forget(name: string): Promise<void> {
    this.#recent.delete(name)
    for (const kind of ['dists', 'full', 'abbreviated'] as const) await this.#disk.remove(kind, name)
  }

  async #read(name: string): Promise<Dists> {
    const recent = this.#recent.get(name)
    if (recent !== undefined) return recent
    const found = await this.#disk.read('dists', name)
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

/** Parses a cached index. A damaged one counts as empty. */
function parse(bytes: Uint8Array): Dists {
  try {
    const dists = JSON.parse(new TextDecoder().decode(bytes))
    return typeof dists === 'object' && dists !== null ? dists : {}
  } catch {
    return {}
  }
}

const missing = (name: string, file: string): PackageError =>
  new PackageError(`The registry has no ${file} of ${name} that could be verified.`, 404)
