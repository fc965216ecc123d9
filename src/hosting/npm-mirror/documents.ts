import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import { Budget } from './budget.ts'
import type { DiskCache } from './disk.ts'
import type { DistIndex } from './dist-index.ts'
import { readDocument } from './document.ts'
import type { DocumentResponse, NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'
import { SharedCalls } from './shared-calls.ts'

/** Milliseconds for which a document is used without asking the registry. */
const FRESH_MS = 5 * 60_000

/**
 * The forms of a package's document. The abbreviated one has only the fields for an install and a tenth of the size.
 */
export type Form = 'full' | 'abbreviated'

/** Media type of the abbreviated form. */
export const ABBREVIATED = 'application/vnd.npm.install-v1+json'

const ACCEPT: Readonly<Record<Form, string>> = {
  full: 'application/json',
  abbreviated: `${ABBREVIATED}; q=1.0, application/json; q=0.8`,
}

/** Large documents that are in work at a time: parsed, one takes several times its size. */
const LARGE_AT_ONCE = 2

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
  upstream: NpmRegistry
  index: DistIndex
  logger: Logger
  now: () => number
}

/**
 * Caches packages' documents. One older than five minutes is revalidated by its ETag. If the registry is unreachable,
 * the cached one is used.
 */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #shared = new SharedCalls<string>()
  readonly #large = new Budget(LARGE_AT_ONCE)

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Resolves when no request is under way. */
  async drain(): Promise<void> {
    await this.#shared.drain()
  }

  /**
   * Returns a package's document for `present`.
   *
   * @throws PackageError
   */
  get(name: string, form: Form): Promise<string> {
    return this.#shared.get(`${form} ${name}`, async () => {
      const acquired = once(() => this.#large.acquire('all', 1))
      let isLarge = false
      const onLarge = async (): Promise<void> => {
        isLarge = true
        await acquired()
      }
      try {
        return await this.#get(name, form, onLarge)
      } finally {
        if (isLarge) void acquired().then((release) => release())
      }
    })
  }

  /** @param onLarge called when the document turns out to be large; resolves when it may be loaded */
  async #get(name: string, form: Form, onLarge: () => Promise<void>): Promise<string> {
    const { upstream, now } = this.#options
    const cached = await this.#read(name, form, onLarge)
    // `abs`: the machine's clock may have been set back since.
    if (cached !== null && Math.abs(now() - cached.checkedAt) < FRESH_MS) return cached.text
    const otherForm = once(() => this.#read(name, form === 'full' ? 'abbreviated' : 'full', onLarge))
    if (upstream.isDown) {
      const fallback = cached ?? (await otherForm())
      if (fallback !== null) return fallback.text
    }
    try {
      const path = `/${name.replace('/', '%2f')}`
      const response = await upstream.document(path, ACCEPT[form], cached, onLarge)
      return await this.#fetch(name, form, cached, response)
    } catch (error) {
      if (!(error instanceof PackageError)) throw error
      if (error.status === 404 && cached !== null) await this.#options.disk.remove(form, name)
      const fallback = error.unreachable ? (cached ?? (await otherForm())) : null
      if (fallback === null) throw error
      return fallback.text
    }
  }

  async #fetch(
    name: string,
    form: Form,
    cached: CachedDocument | null,
    response: DocumentResponse,
  ): Promise<string> {
    const { disk, index } = this.#options
    if (response.kind === 'unchanged') {
      await disk.touch(form, name)
      return cached?.text ?? ''
    }
    const { text, dists } = readDocument(name, response.document)
    await index.add(name, dists)
    const body = await Bun.zstdCompress(text)
    const head = `${JSON.stringify({ etag: response.etag, hash: hashOf(body) })}\n`
    await disk.write(form, name, Buffer.concat([Buffer.from(head), body]))
    return text
  }

  /** Reads a cached document. Returns null if there is none or it is damaged. */
  async #read(name: string, form: Form, onLarge: () => Promise<void>): Promise<CachedDocument | null> {
    const found = await this.#options.disk.read(form, name)
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
      this.#options.logger.warn('a damaged document in the package cache is fetched again', { package: name })
      return null
    }
  }
}

const hashOf = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
