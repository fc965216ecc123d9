import type { Dirent } from 'node:fs'
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  utimes,
} from 'node:fs/promises'
import { join } from 'node:path'

/** Kinds of cached files. Each has a directory of its own. */
export type Kind = 'files' | 'documents' | 'dists'

const KINDS: readonly Kind[] = ['files', 'documents', 'dists']

/** The directory of files that are being written. */
const INCOMING = 'incoming'

/** Longest name of a file, in characters. File systems permit 255 bytes. @bound system */
const MAX_NAME = 200

/** Fraction of the limit to which a full cache shrinks. */
const SHRINK_TO = 0.9

/** A file that is being written, invisible until `commit`. */
interface IncomingFile {
  readonly file: FileHandle
  /** Absolute path. */
  readonly path: string
  /** Moves it to its final path atomically. */
  commit(kind: Kind, name: string): Promise<void>
  /** Removes it unless it was committed. */
  discard(): Promise<void>
}

/**
 * The cache's files. Each is written to a temporary path and then renamed, so a file at its final path is complete
 * even if berth was killed. The least recently used files are removed if the limit is exceeded.
 */
export class DiskCache {
  readonly #directory: string
  readonly #maxBytes: number
  readonly #now: () => number
  #opened: Promise<void> | null = null
  #bytes = 0
  #incoming = 0
  #shrinking: Promise<void> | null = null

  /**
   * @param directory absolute path
   * @param maxBytes limit for all files together
   * @param now returns milliseconds since 1970
   */
  constructor(directory: string, maxBytes: number, now: () => number) {
    this.#directory = directory
    this.#maxBytes = maxBytes
    this.#now = now
  }

  /** Creates the directory, and removes unfinished files of a berth that was killed. */
  open(): Promise<void> {
    this.#opened ??= this.#prepare()
    return this.#opened
  }

  /** Resolves when the cache is open and no removal of old files is under way. */
  async drain(): Promise<void> {
    await this.#opened?.catch(() => {})
    await this.#shrinking?.catch(() => {})
  }

  /** Returns the absolute path of a file. Names are packages or hashes; escaping keeps them inside the directory. */
  path(kind: Kind, name: string): string {
    const escaped = encodeURIComponent(name)
    const short =
      escaped.length <= MAX_NAME ? escaped : new Bun.CryptoHasher('sha256').update(name).digest('hex')
    return join(this.#directory, kind, short)
  }

  /**
   * Reads a file. Returns its bytes and its modification time in milliseconds since 1970, or null if there is none.
   */
  async read(kind: Kind, name: string): Promise<{ bytes: Uint8Array; time: number } | null> {
    const path = this.path(kind, name)
    try {
      const [bytes, { mtimeMs }] = await Promise.all([readFile(path), stat(path)])
      return { bytes, time: mtimeMs }
    } catch {
      // There is none. One that cannot be read is fetched again, too.
      return null
    }
  }

  /**
   * Sets a file's modification time to now. It is the last use, which decides on removal, and for documents the last
   * revalidation.
   */
  async touch(kind: Kind, name: string): Promise<void> {
    const seconds = this.#now() / 1000
    await utimes(this.path(kind, name), seconds, seconds).catch(() => {})
  }

  async write(kind: Kind, name: string, bytes: Uint8Array): Promise<void> {
    const incoming = await this.receive()
    try {
      await incoming.file.writeFile(bytes)
      await incoming.commit(kind, name)
    } finally {
      await incoming.discard()
    }
  }

  async remove(kind: Kind, name: string): Promise<void> {
    const path = this.path(kind, name)
    const size = await sizeOf(path)
    await rm(path, { force: true })
    this.#bytes -= size
  }

  /** Creates a temporary file. */
  async receive(): Promise<IncomingFile> {
    const path = join(this.#directory, INCOMING, String(this.#incoming++))
    const file = await open(path, 'wx', 0o600)
    let done = false
    return {
      file,
      path,
      commit: async (kind, name) => {
        done = true
        const target = this.path(kind, name)
        const [{ size }, before] = [await file.stat(), await sizeOf(target)]
        await file.close()
        await rename(path, target)
        await this.touch(kind, name)
        this.#bytes += size - before
        await this.#shrink()
      },
      discard: async () => {
        if (done) return
        done = true
        await file.close()
        await rm(path, { force: true })
      },
    }
  }

  async #prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    // Unfinished files, and what earlier versions of berth kept.
    for (const { name } of (await readdir(this.#directory, { withFileTypes: true })).filter(isOutdated))
      await rm(join(this.#directory, name), { recursive: true, force: true })
    for (const directory of [...KINDS, INCOMING])
      await mkdir(join(this.#directory, directory), { recursive: true })
    // Not awaited: to count tens of thousands of files takes long.
    this.#shrinking = this.#removeOldest().finally(() => {
      this.#shrinking = null
    })
    this.#shrinking.catch(() => {})
  }

  /**
   * Removes the least recently used files if the limit is exceeded. A removed file that is open is still sent to its
   * end.
   */
  async #shrink(): Promise<void> {
    if (this.#bytes <= this.#maxBytes) return
    this.#shrinking ??= this.#removeOldest().finally(() => {
      this.#shrinking = null
    })
    await this.#shrinking
  }

  async #removeOldest(): Promise<void> {
    const files = (await this.#files()).sort((one, other) => one.time - other.time)
    this.#bytes = files.reduce((sum, { size }) => sum + size, 0)
    if (this.#bytes <= this.#maxBytes) return
    // The newest file is in use now, however large it is.
    for (const { path, size } of files.slice(0, -1)) {
      if (this.#bytes <= this.#maxBytes * SHRINK_TO) return
      await unlink(path).catch(() => {})
      this.#bytes -= size
    }
  }

  async #files(): Promise<{ path: string; size: number; time: number }[]> {
    const all: { path: string; size: number; time: number }[] = []
    for (const kind of KINDS) {
      for (const name of await readdir(join(this.#directory, kind))) {
        const path = join(this.#directory, kind, name)
        const found = await stat(path).catch(() => null)
        if (found !== null) all.push({ path, size: found.size, time: found.mtimeMs })
      }
    }
    return all
  }
}

const isOutdated = (entry: Dirent): boolean =>
  entry.isDirectory() && !KINDS.some((kind) => kind === entry.name)

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.size ?? 0
