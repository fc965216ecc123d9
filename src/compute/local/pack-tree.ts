import { chmodSync, closeSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { type Header, type Pack, pack } from 'tar-stream'
import { readInto } from '../../runtime/descriptor-io.ts'
import { Pace } from '../../runtime/pace.ts'
import { tarBytes } from '../../runtime/tar-bytes.ts'
import { canSkip, DirectoryChain } from './directories.ts'
import { Listing } from './listing.ts'
import {
  addPermissions,
  childPath,
  type EntryName,
  joinNames,
  openForReading,
  type PinnedEntry,
  pinChild,
} from './pinned.ts'
import { isTemporary } from './temporary-file.ts'

/** Records (pax) of a name, and of a link's target, that is not UTF-8: hexadecimal digits. */
export const RAW_NAME = 'BERTH.path'
export const RAW_TARGET = 'BERTH.linkpath'

/** Bytes of a file read at a time. */
const PIECE = 256 * 1024

/** Size of a file, in bytes, up to which system calls take less time than a turn through the thread pool. */
export const SMALL_FILE = 256 * 1024

const READ = 0o400
const READ_AND_SEARCH = 0o500

/** The largest time of a header, in seconds; an exact one is in a record of its own. @bound system */
const MAX_HEADER_SECONDS = 2 ** 31 - 1

type Sink = ReturnType<Pack['entry']>
type PackedHeader = Partial<Header> & Pick<Header, 'name'>

/** A directory that is packed: its path in the archive, and the entries still to pack. */
interface PackFrame {
  path: EntryName
  entries: Listing
  /** The mode to give back to a directory that was closed to berth's user. */
  closedMode: number | null
}

/**
 * Packs everything below a pinned directory as tar (POSIX.1-2001 pax), at the pace of the reader: directories, files,
 * links and hard links, with permission bits and times. Leaves out sockets, pipes, devices and temporary files. Follows no link; skips what vanishes meanwhile. A file that
 * shrinks while it is read is filled with zeros.
 */
export function packWorkspaceTree(root: PinnedEntry): AsyncGenerator<Uint8Array> {
  const tar = pack()
  return tarBytes(tar, () => new TreePacker(tar, root).run())
}

class TreePacker {
  readonly #tar: Pack
  readonly #root: PinnedEntry
  readonly #pace = new Pace()
  /** The path of each file that has several names, by its inode. */
  readonly #paths = new Map<string, EntryName>()

  constructor(tar: Pack, root: PinnedEntry) {
    this.#tar = tar
    this.#root = root
  }

  /** Packs all entries, at the pace of the reader. */
  async run(): Promise<void> {
    using chain = new DirectoryChain(this.#root)
    const frames: PackFrame[] = [{ path: '', entries: await chain.list(this.#root), closedMode: null }]
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const entry = frame.entries.pop()
      if (this.#pace.due) await this.#pace.rest()
      try {
        if (entry === undefined) {
          frames.pop()
          if (frames.length > 0) leave(chain, frame)
        } else if (!isTemporary(String(entry.name))) {
          const path = frame.path === '' ? entry.name : joinNames(frame.path, entry.name)
          if (entry.kind === 'directory') {
            const dir = chain.enter(entry.name)
            const below: PackFrame = { path, entries: Listing.of(dir), closedMode: null }
            frames.push(below)
            below.closedMode = addPermissions(dir, READ_AND_SEARCH)
            below.entries = await chain.list(dir)
            await this.#add({ ...headerOf(path, dir.stats), type: 'directory' })
          } else await this.#packFile(chain.current, entry.name, path)
        }
      } catch (error) {
        if (!canSkip(error)) throw error
      }
    }
  }

  async #packFile(dir: PinnedEntry, name: EntryName, path: EntryName): Promise<void> {
    using entry = pinChild(dir, name)
    const { stats } = entry
    if (stats.isSymbolicLink()) {
      const target = readlinkSync(childPath(dir, name), 'buffer')
      await this.#add({ ...headerOf(path, stats, target), type: 'symlink' })
    }
    if (!stats.isFile()) return
    const inode = `${stats.dev}:${stats.ino}`
    const packed = this.#paths.get(inode)
    if (packed !== undefined) {
      await this.#add({ ...headerOf(path, stats, Buffer.from(packed)), type: 'link' })
      return
    }
    if (stats.nlink > 1) this.#paths.set(inode, path)
    const closedMode = addPermissions(entry, READ)
    try {
      const descriptor = openForReading(entry)
      try {
        await this.#addFile({ ...headerOf(path, stats), type: 'file', size: stats.size }, descriptor)
      } finally {
        closeSync(descriptor)
      }
    } finally {
      if (closedMode !== null) chmodSync(entry.path, closedMode)
    }
  }

  async #addFile(header: PackedHeader & { size: number }, descriptor: number): Promise<void> {
    const { size } = header
    await this.#add(header, async (sink) => {
      for (let at = 0; at < size; ) {
        const piece = new Uint8Array(Math.min(PIECE, size - at))
        const { length } = piece
        const read =
          size <= SMALL_FILE
            ? readSync(descriptor, piece, 0, length, at)
            : await readInto(descriptor, piece, 0, length, at)
        // A file that has become shorter leaves zeros.
        at += read === 0 ? length : read
        if (!sink.write(read === 0 ? piece : piece.subarray(0, read))) await drained(sink)
      }
      sink.end(null)
    })
  }

  /** Adds one entry; resolves when the next may follow. Throws if the archive is not read any more. */
  #add(header: PackedHeader, write?: (sink: Sink) => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const sink = this.#tar.entry(header, (error?: Error | null) => (error ? reject(error) : resolve()))
      sink.on('error', reject)
      write?.(sink).catch(reject)
    })
  }
}

function leave(chain: DirectoryChain, { closedMode }: PackFrame): void {
  try {
    if (closedMode !== null) chmodSync(chain.current.path, closedMode)
  } finally {
    chain.leave()
  }
}

/** Resolves when a stream takes more bytes, or is gone. */
const drained = (sink: Sink): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      sink.off('drain', done)
      sink.off('close', done)
      resolve()
    }
    sink.on('drain', done)
    sink.on('close', done)
  })

function headerOf(path: EntryName, { mode, mtimeMs }: Stats, target?: Buffer): PackedHeader {
  const seconds = Math.min(MAX_HEADER_SECONDS, Math.max(0, mtimeMs / 1000))
  const pax: Record<string, string> = { mtime: String(mtimeMs / 1000) }
  if (typeof path !== 'string') pax[RAW_NAME] = path.toString('hex')
  if (target !== undefined && !Buffer.from(target.toString()).equals(target))
    pax[RAW_TARGET] = target.toString('hex')
  // The bits of its type stay: tar-stream takes a mode of 0 for none, and the header has none of them.
  const header = { name: path.toString(), mode: mode & ~0o7000, mtime: new Date(seconds * 1000), pax }
  return target === undefined ? header : { ...header, linkname: target.toString() }
}
