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

/** What lies in the cache, each kind in a directory of its own. */
export type Kind = 'tarballs' | 'full' | 'abbreviated' | 'dists'

const KINDS: readonly Kind[] = ['tarballs', 'full', 'abbreviated', 'dists']

/** To what part of the limit the cache shrinks when it has grown beyond. */
const SHRINK_TO = 0.9

/** A file under way into the cache, which nobody sees before it is kept. */
export interface IncomingFile {
  readonly file: FileHandle
  /** Puts it in its place, in which it is seen at once and whole. */
  commit(kind: Kind, name: string): Promise<void>
  /** Removes it, where it was not kept. */
  discard(): Promise<void>
}

/**
 * The cache's files. Each is written aside and renamed into its place, so that one that is there is whole, whenever
 * berth was killed; the oldest go where they take more than allowed.
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
   * @param maxBytes of all its files
   * @param now milliseconds since 1970
   */
  constructor(directory: string, maxBytes: number, now: () => number) {
    this.#directory = directory
    this.#maxBytes = maxBytes
    this.#now = now
  }

  /** Makes the directory, and removes what a killed berth was about to write. */
  open(): Promise<void> {
    this.#opened ??= this.#prepare()
    return this.#opened
  }

  /** Resolves when nothing is under way with its files on its own account. */
  async drain(): Promise<void> {
    await this.#opened?.catch(() => {})
    await this.#shrinking?.catch(() => {})
  }

  /** Absolute path of a file. Names are of packages, or hashes: escaped, they lead nowhere else. */
  path(kind: Kind, name: string): string {
    return join(this.#directory, kind, encodeURIComponent(name))
  }

  /** A file's bytes and its time, milliseconds since 1970; null where there is none. */
  async read(kind: Kind, name: string): Promise<{ bytes: Uint8Array; time: number } | null> {
    const path = this.path(kind, name)
    try {
      const [bytes, { mtimeMs }] = await Promise.all([readFile(path), stat(path)])
      return { bytes, time: mtimeMs }
    } catch {
      return null
    }
  }

  /** Sets a file's time to now: of use, by which the oldest go, and for documents of the last check. */
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

  /** A new file, aside. */
  async receive(): Promise<IncomingFile> {
    const path = join(this.#directory, 'incoming', String(this.#incoming++))
    const file = await open(path, 'wx', 0o600)
    let done = false
    return {
      file,
      commit: async (kind, name) => {
        done = true
        const place = this.path(kind, name)
        const [{ size }, before] = [await file.stat(), await sizeOf(place)]
        await file.close()
        await rename(path, place)
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
    const incoming = join(this.#directory, 'incoming')
    await rm(incoming, { recursive: true, force: true })
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    for (const directory of [...KINDS, 'incoming'])
      await mkdir(join(this.#directory, directory), { recursive: true })
    // Nobody waits for the count, which tens of thousands of files make long.
    this.#shrinking = this.#removeOldest().finally(() => {
      this.#shrinking = null
    })
    this.#shrinking.catch(() => {})
  }

  /** Removes the files that were not used for longest. One that is being sent is sent to its end all the same. */
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
    // The newest is wanted just now, however large it is.
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

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => null))?.size ?? 0
