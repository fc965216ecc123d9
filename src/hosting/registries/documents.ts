import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Budget } from './budget.ts'
import type { DiskCache } from './disk.ts'
import type { DistIndex } from './dist-index.ts'
import { PackageError } from './problem.ts'
import { SharedCalls } from './shared-calls.ts'
import type { DocumentResponse, Upstream } from './upstream.ts'
import type { DocumentSource } from './wanted.ts'

/** Milliseconds for which a document is used without asking the registry. */
const FRESH_MS = 5 * 60_000

/** Large documents that are in work at a time: parsed, one takes several times its size. */
export const LARGE_AT_ONCE = 2

/** Bytes on disk, compressed, from which a cached document counts as large. */
const LARGE_ON_DISK = 128 * 1024

/** A document in the cache. */
interface CachedDocument {
  /** Text for `present`. */
  readonly text: string
  readonly etag: string | null
  /** Milliseconds since 1970 of the registry's last confirmation. */
  readonly checkedAt: number
}

/** Dependencies of `Documents`. */
interface DocumentsOptions {
  disk: DiskCache
  /** The registry's name in the cache. */
  registry: string
  upstream: Upstream
  index: DistIndex
  /** Bounds the large documents in work, those of other registries too. */
  large: Budget
  logger: Logger
  now: () => number
}

/**
 * Caches the documents of a registry. One older than five minutes is revalidated by its ETag. If the registry is unreachable,
 * the cached one is used.
 */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #shared = new SharedCalls<string>()

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Resolves when no request is under way. */
  async drain(): Promise<void> {
    await this.#shared.drain()
  }

  /**
   * Returns a document for `present`.
   *
   * @throws PackageError
   */
  get(source: DocumentSource): Promise<string> {
    return this.#shared.get(source.key, async () => {
      const acquired = once(() => this.#options.large.acquire('all', 1))
      let isLarge = false
      const onLarge = async (): Promise<void> => {
        isLarge = true
        await acquired()
      }
      try {
        return await this.#get(source, onLarge)
      } finally {
        if (isLarge) void acquired().then((release) => release())
      }
    })
  }

  /** @param onLarge called when the document turns out to be large; resolves when it may be loaded */
  async #get(source: DocumentSource, onLarge: () => Promise<void>): Promise<string> {
    const { upstream, now } = this.#options
    const cached = await this.#read(source.key, onLarge)
    // `abs`: the machine's clock may have been set back since.
    if (cached !== null && Math.abs(now() - cached.checkedAt) < FRESH_MS) return cached.text
    const other = once(async () => (source.other === undefined ? null : this.#read(source.other, onLarge)))
    if (upstream.isDown) {
      const fallback = cached ?? (await other())
      if (fallback !== null) return fallback.text
    }
    try {
      const response = await upstream.document(source.path, source.accept, cached, onLarge)
      return await this.#fetch(source, cached, response)
    } catch (error) {
      if (!(error instanceof PackageError)) throw error
      if (error.status === 404 && cached !== null)
        await this.#options.disk.remove('documents', this.#name(source.key))
      const fallback = error.unreachable ? (cached ?? (await other())) : null
      if (fallback === null) throw error
      return fallback.text
    }
  }

  #name(key: string): string {
    return `${this.#options.registry} ${key}`
  }

  async #fetch(
    source: DocumentSource,
    cached: CachedDocument | null,
    response: DocumentResponse,
  ): Promise<string> {
    const { disk, index } = this.#options
    const name = this.#name(source.key)
    if (response.kind === 'unchanged') {
      await disk.touch('documents', name)
      return cached?.text ?? ''
    }
    const { text, dists } = source.read(response)
    if (source.package !== null) await index.add(source.package, dists)
    const body = await Bun.zstdCompress(text)
    const head = `${JSON.stringify({ etag: response.etag, hash: hashOf(body) })}\n`
    await disk.write('documents', name, Buffer.concat([Buffer.from(head), body]))
    return text
  }

  /** Forgets a document whose records turned out to be wrong. */
  async forget(key: string): Promise<void> {
    await this.#options.disk.remove('documents', this.#name(key))
  }

  /** Reads a cached document. Returns null if there is none or it is damaged. */
  async #read(key: string, onLarge: () => Promise<void>): Promise<CachedDocument | null> {
    const found = await this.#options.disk.read('documents', this.#name(key))
    if (found === null) return null
    if (found.bytes.length >= LARGE_ON_DISK) await onLarge()
    try {
      const end = found.bytes.indexOf(10)
      const head = JSON.parse(new TextDecoder().decode(found.bytes.subarray(0, end)))
      const body = found.bytes.subarray(end + 1)
      if (head.hash !== hashOf(body)) throw new Error('another hash')
      const text = new TextDecoder().decode(await Bun.zstdDecompress(body))
      return { text, etag: head.etag, checkedAt: found.time }
    } catch {
      this.#options.logger.warn('a damaged document in the package cache is fetched again', { document: key })
      return null
    }
  }
}

const hashOf = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
