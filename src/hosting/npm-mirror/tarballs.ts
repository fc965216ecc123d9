import { type FileHandle, open } from 'node:fs/promises'
import type { Logger } from '../../runtime/logger.ts'
import type { DiskCache } from './disk.ts'
import type { DistIndex } from './dist-index.ts'
import type { Dist } from './document.ts'
import { type Integrity, integrityText, parseIntegrity } from './integrity.ts'
import type { NpmRegistry } from './npm-registry.ts'
import { PackageError } from './problem.ts'
import { SharedCalls } from './shared-calls.ts'

/** Largest size of a tarball, in bytes. */
const MAX_TARBALL_BYTES = 2 ** 30

/** Size of a read, in bytes. A tarball that fits into one is sent from the memory that it was verified in. */
export const PART_BYTES = 2 ** 20

/** Dependencies of `Tarballs`. */
interface TarballsOptions {
  disk: DiskCache
  upstream: NpmRegistry
  index: DistIndex
  logger: Logger
}

/** A verified tarball to send. */
interface Tarball {
  readonly size: number
  /**
   * Its bytes, which stay readable if the cache removes the file meanwhile. Read a stream to its end or cancel it.
   */
  readonly body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>
}

/**
 * Caches tarballs by the hash in the registry's document. It neither keeps nor sends bytes with another hash, so
 * every server gets what the registry has published.
 */
export class Tarballs {
  readonly #options: TarballsOptions
  readonly #downloads = new SharedCalls<void>()

  constructor(options: TarballsOptions) {
    this.#options = options
  }

  /** Resolves when no download is under way. */
  drain(): Promise<void> {
    return this.#downloads.drain()
  }

  /**
   * Returns a tarball, which it downloads unless it is cached.
   *
   * @throws PackageError
   */
  async get(name: string, file: string): Promise<Tarball> {
    const dist = await this.#options.index.find(name, file)
    const integrity = parseIntegrity(dist.integrity)
    const cached = await this.#open(integrity)
    if (cached !== null) return cached
    await this.#downloads.get(dist.integrity, () => this.#download(name, dist, integrity))
    const fetched = await this.#open(integrity)
    if (fetched === null) throw new PackageError(`${file} could not be kept: is the disk full?`, 424)
    return fetched
  }

  /**
   * Opens the file of a hash and verifies it. Returns null if it is missing or damaged, and removes a damaged one.
   */
  async #open(integrity: Integrity): Promise<Tarball | null> {
    const { disk, logger } = this.#options
    const key = integrityText(integrity)
    const file = await open(disk.path('tarballs', key), 'r').catch(() => null)
    if (file === null) return null
    try {
      const hasher = new Bun.CryptoHasher(integrity.algorithm)
      let size = 0
      let content: Uint8Array<ArrayBuffer> | null = null
      for await (const part of parts(file, (await file.stat()).size)) {
        hasher.update(part)
        content = size === 0 ? part : null
        size += part.byteLength
      }
      if (hasher.digest('hex') === integrity.digest) {
        await disk.touch('tarballs', key)
        if (content === null) return { size, body: streamOf(file, size) }
        await file.close()
        return { size, body: content }
      }
    } catch (error) {
      logger.warn('a file of the package cache cannot be read', { error })
    }
    await file.close()
    logger.warn('a damaged file of the package cache is fetched again', { file: key })
    await disk.remove('tarballs', key)
    return null
  }

  async #download(name: string, { url }: Dist, integrity: Integrity): Promise<void> {
    const { disk, upstream, index } = this.#options
    const incoming = await disk.receive()
    try {
      let hasher = new Bun.CryptoHasher(integrity.algorithm)
      let at = 0
      const onPart = async (part: Uint8Array): Promise<void> => {
        hasher.update(part)
        for (let done = 0; done < part.byteLength; ) {
          const { bytesWritten } = await incoming.file.write(part, done, part.byteLength - done, at)
          done += bytesWritten
          at += bytesWritten
        }
      }
      const restart = async (): Promise<void> => {
        hasher = new Bun.CryptoHasher(integrity.algorithm)
        at = 0
        await incoming.file.truncate(0)
      }
      await upstream.download(url, MAX_TARBALL_BYTES, onPart, restart)
      const digest = hasher.digest('hex')
      if (digest !== integrity.digest) {
        // The document may have been damaged, on the disk or in transit.
        await index.forget(name)
        const found = integrityText({ algorithm: integrity.algorithm, digest })
        throw new PackageError(
          `What the registry sent for ${url} is not what its own record says: ${integrityText(integrity)} was expected, ${found} came. Nothing of it was kept.`,
          424,
        )
      }
      await incoming.commit('tarballs', integrityText(integrity))
    } finally {
      await incoming.discard()
    }
  }
}

/** Reads a file from its beginning in parts of up to `PART_BYTES`. */
async function* parts(file: FileHandle, size: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < size; ) {
    const part = new Uint8Array(Math.min(PART_BYTES, size - at))
    const { bytesRead } = await file.read(part, 0, part.byteLength, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield part.subarray(0, bytesRead)
  }
}

/** Returns a file's bytes as a stream, which closes the file at its end. */
function streamOf(file: FileHandle, size: number): ReadableStream<Uint8Array> {
  const source = parts(file, size)
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next()
      if (!done) return controller.enqueue(value)
      await file.close()
      controller.close()
    },
    cancel: () => file.close(),
  })
}
