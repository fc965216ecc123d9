import type { DiskCache } from './disk.ts'
import { type Dist, type Dists, readManifest, versionOf } from './document.ts'
import type { NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'

/** Packages whose tarballs are known without a look at the disk. */
const IN_MEMORY = 300

/** What every tarball must be, as the registry's documents say. What one has said once holds until one says otherwise. */
export class DistIndex {
  readonly #disk: DiskCache
  readonly #upstream: NpmRegistry
  readonly #recent = new Map<string, Dists>()

  constructor(disk: DiskCache, upstream: NpmRegistry) {
    this.#disk = disk
    this.#upstream = upstream
  }

  /**
   * A tarball's record. One that is in no document known so far, as where a lock file names it, is asked for by its
   * version: a document of one version is small.
   *
   * @throws PackageError where there is none
   */
  async find(name: string, file: string): Promise<Dist> {
    const known = (await this.#read(name))[file]
    if (known !== undefined) return known
    const version = versionOf(name, file)
    if (version === null) throw missing(name, file)
    const path = `/${name.replace('/', '%2f')}/${encodeURIComponent(version)}`
    const answer = await this.#upstream.document(path, 'application/json', null)
    const document = answer.kind === 'document' ? answer.document : null
    const dists = readManifest(name, version, document)?.dists ?? {}
    const found = dists[file]
    if (found === undefined) throw missing(name, file)
    await this.add(name, dists)
    return found
  }

  /** Takes in what a document says. */
  async add(name: string, dists: Dists): Promise<void> {
    const all = { ...(await this.#read(name)), ...dists }
    this.#remember(name, all)
    await this.#disk.write('dists', name, new TextEncoder().encode(JSON.stringify(all)))
  }

  /** Forgets what is known of a package: it turned out to be wrong. */
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

/** What is damaged counts as unknown. */
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
