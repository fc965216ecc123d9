import {
  chmodSync,
  closeSync,
  constants,
  ftruncateSync,
  lchownSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { readInto, writeAll } from '../../runtime/descriptor-io.ts'
import { codeOf } from '../../runtime/error-info.ts'
import { Pace } from '../../runtime/pace.ts'
import { loadCopyCalls } from '../../system/files.ts'
import type { CopyCalls } from '../../system/system.ts'
import { DirectoryChain } from './directories.ts'
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

/** Size of a file, in bytes, up to which a copy takes less time than a turn through the thread pool. */
const SMALL_FILE = 64 * 1024

/** Bytes of a large file that are copied at a time. */
const PIECE = 4 * 1024 * 1024

const READ = 0o400
const READ_AND_SEARCH = 0o500

/** A new file, and one that exists is an error; blocks are shared if the file system can. */
const COPY_MODE = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE

/** A directory that is copied: its copy, and the entries still to copy. */
interface CopyFrame {
  to: EntryName
  entries: Listing
  /** Null for the top, which is the caller's. */
  stats: Stats | null
  /** The mode to give back to a directory that was closed to berth's user. */
  closedMode: number | null
}

/**
 * Copies everything below a pinned directory: directories, files, links and hard links, with owners, modes, times and
 * holes. Leaves out sockets, pipes, devices and temporary files. Programs may change the tree meanwhile: no link is
 * followed, so nothing from outside is copied, and what vanishes is skipped.
 *
 * @param to absolute path of an empty directory that no server reaches
 * @param isLeftOut reports whether an entry is not copied, by its name and the number of directories above it
 * @throws the system's error; the signal's reason
 */
export async function copyTree(
  root: PinnedEntry,
  to: string,
  signal?: AbortSignal,
  isLeftOut: (name: string, depth: number) => boolean = () => false,
): Promise<void> {
  const pace = new Pace()
  const copier = new FileCopier()
  using chain = new DirectoryChain(root)
  const top = { to, entries: await chain.list(root), stats: null, closedMode: null }
  const frames: CopyFrame[] = [top]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    signal?.throwIfAborted()
    if (entry === undefined) {
      frames.pop()
      leave(chain, frame)
    } else if (!isTemporary(String(entry.name)) && !isLeftOut(String(entry.name), frames.length - 1)) {
      const copy = joinNames(frame.to, entry.name)
      const copyFile = async (): Promise<boolean> => {
        const parent = unlessGone(() => chain.current)
        return parent !== null && (await copier.copy(parent, entry.name, copy))
      }
      // Since it was listed, it may have been replaced by an entry of the other kind.
      if (entry.kind !== 'directory') {
        if (!(await copyFile())) frame.entries.push({ name: entry.name, kind: 'directory' })
        continue
      }
      const below = await enter(chain, entry.name, copy)
      if (below !== null) frames.push(below)
      else await copyFile()
    }
  }
}

/** Enters a directory and makes its copy; null if it is not there any more. */
async function enter(chain: DirectoryChain, name: EntryName, copy: EntryName): Promise<CopyFrame | null> {
  const dir = unlessGone(() => chain.enter(name))
  if (dir === null) return null
  mkdirSync(copy, { mode: 0o700 })
  const closedMode = unlessGone(() => addPermissions(dir, READ_AND_SEARCH))
  const entries = await chain.list(dir).catch((error: unknown) => {
    if (isGone(error)) return Listing.of(dir)
    throw error
  })
  return { to: copy, entries, stats: dir.stats, closedMode }
}

/** Completes a directory and its copy. */
function leave(chain: DirectoryChain, { to, stats, closedMode }: CopyFrame): void {
  if (stats === null) return
  if (closedMode !== null) unlessGone(() => chmodSync(chain.current.path, closedMode))
  chain.leave()
  setAttributes(to, stats)
}

/** Copies what is not a directory. */
class FileCopier {
  /** The copy of each file that has several names, by its inode. */
  readonly #copies = new Map<string, EntryName>()
  readonly #scratch = new Uint8Array(SMALL_FILE)
  #calls: CopyCalls | null = null
  /** Whether the file system may share blocks. */
  #shares = true

  /** Copies an entry, if it is there. @returns false for a directory, which it does not copy */
  async copy(dir: PinnedEntry, name: EntryName, to: EntryName): Promise<boolean> {
    using entry = unlessGone(() => pinChild(dir, name))
    if (entry?.stats.isSymbolicLink()) this.#copyLink(dir, name, entry.stats, to)
    else if (entry?.stats.isFile()) await this.#copyFile(entry, to)
    return entry?.stats.isDirectory() !== true
  }

  #copyLink(dir: PinnedEntry, name: EntryName, stats: Stats, to: EntryName): void {
    const target = unlessGone(() => readlinkSync(childPath(dir, name), 'buffer'))
    if (target === null) return
    symlinkSync(target, to)
    own(to, stats)
    lutimesSync(to, stats.atimeMs / 1000, stats.mtimeMs / 1000)
  }

  async #copyFile(entry: PinnedEntry, to: EntryName): Promise<void> {
    const { stats } = entry
    const inode = `${stats.dev}:${stats.ino}`
    const copy = this.#copies.get(inode)
    if (copy !== undefined) {
      linkSync(copy, to)
      return
    }
    if (stats.nlink > 1) this.#copies.set(inode, to)
    const closedMode = addPermissions(entry, READ)
    try {
      await this.#copyContent(entry, to)
    } catch (error) {
      throw codeOf(error) === 'EAGAIN' ? reserved(to) : error
    } finally {
      if (closedMode !== null) chmodSync(entry.path, closedMode)
    }
    setAttributes(to, stats)
  }

  /**
   * Copies as many bytes as the file had when it was found, and no hole: a program can make it longer at any time, without
   * any disk. Opens it without waiting, because a program can have reserved it (`F_SETLEASE` of fcntl(2)); then any other
   * way to open it, also that of `copyFile`, waits for 45 s.
   */
  async #copyContent(entry: PinnedEntry, to: EntryName): Promise<void> {
    if (!entry.pinned) return await copyFile(entry.path, to, COPY_MODE)
    const { size, blocks } = entry.stats
    const from = openForReading(entry)
    try {
      const copy = openSync(to, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
      try {
        if (size === 0) return
        this.#calls ??= loadCopyCalls()
        if (this.#shares && this.#calls.share(from, copy)) return
        this.#shares = false
        if (size <= SMALL_FILE && blocks * 512 >= size) copySmall(from, copy, this.#scratch.subarray(0, size))
        else await copyData(from, copy, size, this.#calls)
      } finally {
        closeSync(copy)
      }
    } finally {
      closeSync(from)
    }
  }
}

function copySmall(from: number, copy: number, bytes: Uint8Array): void {
  const read = readSync(from, bytes, 0, bytes.length, 0)
  for (let at = 0; at < read; ) at += writeSync(copy, bytes, at, read - at)
}

/** Copies what a file has between its holes. */
async function copyData(from: number, copy: number, size: number, { data, hole }: CopyCalls): Promise<void> {
  const piece = new Uint8Array(Math.min(PIECE, size))
  for (let at = data(from, 0); at >= 0 && at < size; ) {
    const end = hole(from, at)
    const read = await readInto(from, piece, 0, Math.min(piece.length, end - at, size - at), at)
    // It has become shorter.
    if (read === 0) break
    await writeAll(copy, piece.subarray(0, read), at)
    at = data(from, at + read)
  }
  ftruncateSync(copy, size)
}

const reserved = (to: EntryName): Error =>
  new Error(`A program of a server has reserved ${JSON.stringify(basename(String(to)))} (a lease). End it`)

/** Gives a copied file or directory what its original has. */
function setAttributes(path: EntryName, stats: Stats): void {
  own(path, stats)
  chmodSync(path, stats.mode & 0o7777)
  utimesSync(path, stats.atimeMs / 1000, stats.mtimeMs / 1000)
}

/** Gives a copy to the owner of the original, as only root can. */
function own(path: EntryName, { uid, gid }: Stats): void {
  if (process.geteuid?.() === 0 && (uid !== 0 || gid !== 0)) lchownSync(path, uid, gid)
}

/** Returns what `look` does; null if what it looks at has vanished or was replaced. */
function unlessGone<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** A directory that was moved away or replaced by a file or a link, or a link that is none any more. */
const isGone = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL'].includes(codeOf(error) ?? '')
