import type { Stats } from 'node:fs'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Header, Pack } from 'tar-stream'
import { isGone } from '../../runtime/if-present.ts'
import { tarBytes } from '../../runtime/tar-bytes.ts'
import { unreadable } from '../local-file.ts'

/** Bytes of a file that are read at a time. */
const PIECE = 256 * 1024

/** Notified while a directory is packed. */
export interface PackListener {
  /** Called for bytes of files that were read. */
  read(bytes: number): void
  /** Called for each file and link. */
  packed(): void
  /** Called for a socket, a pipe or a device, which is left out. */
  skipped(path: string): void
}

/**
 * Packs a directory with everything in it as tar (POSIX.1-2001 pax), at the pace of the reader: directories, files and
 * links, with permission bits and times. Follows no link.
 *
 * @throws CommandError if something cannot be read
 */
export const packLocal = (directory: string, listener: PackListener): AsyncGenerator<Uint8Array> =>
  packed(directory, listener, (packer) => packer.addTree('.'))

/** Packs files and links of a directory, by their paths in it, as `packLocal` does. Skips what is gone. */
export const packPaths = (
  directory: string,
  paths: readonly string[],
  listener: PackListener,
): AsyncGenerator<Uint8Array> =>
  packed(directory, listener, async (packer) => {
    for (const path of paths) await packer.addTree(`./${path}`)
  })

async function* packed(
  directory: string,
  listener: PackListener,
  add: (packer: LocalPacker) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const { pack } = await import('tar-stream')
  const tar = pack()
  yield* tarBytes(tar, () => add(new LocalPacker(tar, directory, listener)))
}

class LocalPacker {
  readonly #tar: Pack
  readonly #root: string
  readonly #listener: PackListener

  constructor(tar: Pack, root: string, listener: PackListener) {
    this.#tar = tar
    this.#root = root
    this.#listener = listener
  }

  /** Adds an entry with everything below. Skips one that is gone. */
  async addTree(path: string): Promise<void> {
    const full = join(this.#root, path)
    const stats = await lstat(full).catch((error) => {
      if (isGone(error)) return null
      throw unreadable(full, error)
    })
    if (stats !== null) await this.#add(path, stats)
  }

  async #add(path: string, stats: Stats): Promise<void> {
    const full = join(this.#root, path)
    const header = { name: path, mode: stats.mode & 0o777, mtime: stats.mtime }
    if (stats.isDirectory()) {
      await this.#entry({ ...header, type: 'directory' })
      const names = await readdir(full).catch((error) => {
        throw unreadable(full, error)
      })
      for (const name of names.sort()) await this.addTree(`${path}/${name}`)
    } else if (stats.isSymbolicLink()) {
      await this.#entry({ ...header, type: 'symlink', linkname: await readlink(full) })
      this.#listener.packed()
    } else if (stats.isFile()) {
      await this.#entry({ ...header, type: 'file', size: stats.size }, () => readFile(full, stats.size))
      this.#listener.packed()
    } else this.#listener.skipped(full)
  }

  /** Adds one entry; resolves when the next may follow. */
  #entry(
    header: Partial<Header> & Pick<Header, 'name'>,
    content?: () => AsyncIterable<Uint8Array>,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const sink = this.#tar.entry(header, (error?: Error | null) => (error ? reject(error) : resolve()))
      sink.on('error', reject)
      if (content === undefined) return
      const fill = async (): Promise<void> => {
        for await (const chunk of content()) {
          this.#listener.read(chunk.length)
          if (!sink.write(chunk)) await new Promise<void>((drained) => sink.once('drain', drained))
        }
        sink.end(null)
      }
      fill().catch(reject)
    })
  }
}

/**
 * Reads a file up to a size. Zeros stand for what it has lost meanwhile.
 *
 * @throws CommandError if it cannot be read
 */
export async function* readFile(path: string, size: number): AsyncGenerator<Uint8Array> {
  let left = size
  try {
    if (size > 0)
      for await (const chunk of createReadStream(path, { highWaterMark: PIECE, end: size - 1 })) {
        left -= chunk.length
        yield chunk
      }
  } catch (error) {
    throw unreadable(path, error)
  }
  for (; left > 0; left -= Math.min(left, PIECE)) yield new Uint8Array(Math.min(left, PIECE))
}
