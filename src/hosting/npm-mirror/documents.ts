import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { DiskCache } from './disk.ts'
import type { DistIndex } from './dist-index.ts'
import { readDocument } from './document.ts'
import type { DocumentResponse, NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'
import { SharedCalls } from './shared-calls.ts'

/** Milliseconds for which a document is taken for the newest. */
const FRESH_MS = 5 * 60_000

/** The two forms of a package's document. The abbreviated one has what an install needs, and is a tenth as long. */
export type Form = 'full' | 'abbreviated'

/** The media type by which the abbreviated form is asked for. */
export const ABBREVIATED = 'application/vnd.npm.install-v1+json'

const ACCEPT: Readonly<Record<Form, string>> = {
  full: 'application/json',
  abbreviated: `${ABBREVIATED}; q=1.0, application/json; q=0.8`,
}

/** A document as it is kept on disk. */
interface CachedDocument {
  /** As of `present`. */
  readonly text: string
  readonly etag: string | null
  /** Milliseconds since 1970 when the registry last said that this is it. */
  readonly checkedAt: number
}

/** What the documents are kept with. */
export interface DocumentsOptions {
  disk: DiskCache
  upstream: NpmRegistry
  index: DistIndex
  logger: Logger
  now: () => number
}

/**
 * Packages' documents: fresh for five minutes, then asked for again by their tag. Where the registry is out of reach,
 * the last one known serves.
 */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #shared = new SharedCalls<string>()

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Resolves when nothing is being fetched any more. */
  async drain(): Promise<void> {
    await this.#shared.drain()
  }

  /** A package's document, as of `present`. @throws PackageError */
  get(name: string, form: Form): Promise<string> {
    return this.#shared.get(`${form} ${name}`, () => this.#get(name, form))
  }

  async #get(name: string, form: Form): Promise<string> {
    const { upstream, now } = this.#options
    const known = await this.#read(name, form)
    // Also where the machine's clock was set back since.
    if (known !== null && Math.abs(now() - known.checkedAt) < FRESH_MS) return known.text
    const other = once(() => this.#read(name, form === 'full' ? 'abbreviated' : 'full'))
    if (upstream.isDown) {
      const standIn = known ?? (await other())
      if (standIn !== null) return standIn.text
    }
    try {
      const answer = await upstream.document(`/${name.replace('/', '%2f')}`, ACCEPT[form], known)
      return await this.#fetch(name, form, known, answer)
    } catch (error) {
      if (!(error instanceof PackageError)) throw error
      if (error.status === 404 && known !== null) await this.#options.disk.remove(form, name)
      const standIn = error.unreachable ? (known ?? (await other())) : null
      if (standIn === null) throw error
      return standIn.text
    }
  }

  async #fetch(
    name: string,
    form: Form,
    known: CachedDocument | null,
    answer: DocumentResponse,
  ): Promise<string> {
    const { disk, index } = this.#options
    if (answer.kind === 'unchanged') {
      await disk.touch(form, name)
      return known?.text ?? ''
    }
    const { text, dists } = readDocument(name, answer.document)
    await index.add(name, dists)
    const body = await Bun.zstdCompress(text)
    const head = `${JSON.stringify({ etag: answer.etag, hash: hashOf(body) })}\n`
    await disk.write(form, name, Buffer.concat([Buffer.from(head), body]))
    return text
  }

  /** What is kept; null where nothing is, or where the disk has damaged it. */
  async #read(name: string, form: Form): Promise<CachedDocument | null> {
    const found = await this.#options.disk.read(form, name)
    if (found === null) return null
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
