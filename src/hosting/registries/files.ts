import { type FileHandle, open } from 'node:fs/promises'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { DiskCache } from './disk.ts'
import { goHash } from './go-hash.ts'
import { type FileHash, type Integrity, integrityText, isOfBytes, parseIntegrity } from './integrity.ts'
import type { RegistryParts } from './parts.ts'
import { PackageError } from './problem.ts'
import { SharedCalls } from './shared-calls.ts'
import type { Dist, Wanted } from './wanted.ts'

/** Largest size of a file, in bytes. @bound peer */
const MAX_FILE_BYTES = 2 ** 30

/** Size of a read, in bytes. A file that fits into one is sent from the memory that it was verified in. */
export const PART_BYTES = 2 ** 20

/** A verified file to send. */
export interface ReadyFile {
  readonly size: number
  /**
   * Its bytes, which stay readable if the cache removes the file meanwhile. Read a stream to its end or cancel it.
   */
  readonly body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>
}

/** A request for a file. */
type WantedFile = Extract<Wanted, { kind: 'file' }>

/**
 * Caches files by the hash in the registry's records. It neither keeps nor sends bytes with another hash, so
 * every server gets what the registry has published. What no record has a hash of is not kept.
 */
export class Files {
  readonly #disk: DiskCache
  readonly #logger: Logger
  readonly #downloads = new SharedCalls<void>()

  constructor({ disk, logger }: { disk: DiskCache; logger: Logger }) {
    this.#disk = disk
    this.#logger = logger
  }

  /** Resolves when no download is under way. */
  drain(): Promise<void> {
    return this.#downloads.drain()
  }

  /**
   * Returns a file, which it downloads unless it is cached.
   *
   * @throws PackageError
   */
  async get(wanted: WantedFile, registry: RegistryParts): Promise<ReadyFile> {
    const dist = await wanted.find()
    if (dist.integrity === null) return this.#pass(dist, registry)
    const integrity = parseIntegrity(dist.integrity)
    const cached = isOfBytes(integrity) ? await this.#open(integrity) : null
    if (cached !== null) return cached
    const key = `${dist.integrity} ${wanted.file}`
    await this.#downloads.get(key, () => this.#download(wanted, registry, dist, integrity))
    const verified = isOfBytes(integrity) ? integrity : parseIntegrity((await wanted.find()).integrity)
    const fetched = isOfBytes(verified) ? await this.#open(verified) : null
    if (fetched === null) throw new PackageError(`${wanted.file} could not be kept: is the disk full?`, 424)
    return fetched
  }

  /**
   * Downloads a file of which no hash is known, for one response. It must come from the registry's own host: a record
   * could name a host that only berth reaches.
   */
  async #pass({ url }: Dist, { upstream }: RegistryParts): Promise<ReadyFile> {
    if (new URL(url).host !== new URL(upstream.address).host)
      throw new PackageError(`${url} is at another host than its registry, which has no hash of it.`, 424)
    const incoming = await this.#disk.receive()
    try {
      await this.#receive(url, incoming.file, upstream)
      const file = await open(incoming.path, 'r')
      const { size } = await file.stat()
      return { size, body: streamOf(file, size) }
    } finally {
      await incoming.discard()
    }
  }

  /**
   * Opens the file of a hash and verifies it. Returns null if it is missing or damaged, and removes a damaged one.
   */
  async #open(integrity: FileHash): Promise<ReadyFile | null> {
    const [disk, logger] = [this.#disk, this.#logger]
    const key = integrityText(integrity)
    const file = await open(disk.path('files', key), 'r').catch(() => null)
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
        await disk.touch('files', key)
        if (content === null) return { size, body: streamOf(file, size) }
        await file.close()
        return { size, body: content }
      }
    } catch (error) {
      logger.warn('a file of the package cache cannot be read', { error })
    }
    await file.close()
    logger.warn('a damaged file of the package cache is fetched again', { file: key })
    await disk.remove('files', key)
    return null
  }

  async #download(
    { package: name, file, documents }: WantedFile,
    { upstream, index, documents: cached }: RegistryParts,
    { url }: Dist,
    integrity: Integrity,
  ): Promise<void> {
    const incoming = await this.#disk.receive()
    try {
      const algorithm = isOfBytes(integrity) ? integrity.algorithm : 'sha256'
      const digest = await this.#receive(url, incoming.file, upstream, algorithm)
      const found = isOfBytes(integrity) ? digest : await contentHash(incoming.path, integrity.algorithm, url)
      if (found !== integrity.digest) {
        // The document may have been damaged, on the disk or in transit.
        await index.forget(name)
        for (const key of documents) await cached.forget(key)
        const came = integrityText({ ...integrity, digest: found })
        throw new PackageError(
          `What the registry sent for ${url} is not what its own record says: ${integrityText(integrity)} was expected, ${came} came. Nothing of it was kept.`,
          424,
        )
      }
      const kept = { algorithm, digest } as const
      await incoming.commit('files', integrityText(kept))
      if (!isOfBytes(integrity)) await index.add(name, { [file]: { url, integrity: integrityText(kept) } })
    } finally {
      await incoming.discard()
    }
  }

  /** Downloads into a file, and returns the hash of what came, in hexadecimal. */
  async #receive(
    url: string,
    file: FileHandle,
    upstream: RegistryParts['upstream'],
    algorithm: FileHash['algorithm'] = 'sha256',
  ): Promise<string> {
    let hasher = new Bun.CryptoHasher(algorithm)
    let at = 0
    const onPart = async (part: Uint8Array): Promise<void> => {
      hasher.update(part)
      for (let done = 0; done < part.byteLength; ) {
        const { bytesWritten } = await file.write(part, done, part.byteLength - done, at)
        done += bytesWritten
        at += bytesWritten
      }
    }
    const restart = async (): Promise<void> => {
      hasher = new Bun.CryptoHasher(algorithm)
      at = 0
      await file.truncate(0)
    }
    await upstream.download(url, MAX_FILE_BYTES, onPart, restart)
    return hasher.digest('hex')
  }
}

async function contentHash(path: string, algorithm: 'h1zip' | 'h1mod', url: string): Promise<string> {
  try {
    return await goHash(path, algorithm === 'h1zip' ? 'zip' : 'mod')
  } catch (error) {
    throw new PackageError(`What the registry sent for ${url} is no module: ${messageOf(error)}.`, 424)
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
