import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  realpathSync,
  type Stats,
} from 'node:fs'
import { NO_LINKS } from '../../system/files.ts'
import { openInode } from '../../system/linux/files.ts'

/** The name of a directory's entry: text, or the raw bytes if they are not UTF-8. */
export type EntryName = string | Buffer

/**
 * An entry of a workspace, held so that no rename or planted link can replace it while it is used. Pass `path` to
 * `node:fs`: on Linux it is `/proc/self/fd/N`, which the kernel resolves to this very inode, so `path/name` is looked
 * up as `openat` would.
 *
 * Without /proc (macOS) `path` is the real path, checked after each step. Links are still never followed, except for
 * a directory that is swapped for a link between the check and the next call that opens nothing (`NO_LINKS`). With Seatbelt a
 * command gains by that what berth itself may do with such a file; without isolation it has the user's own rights anyway.
 */
export class PinnedEntry implements Disposable {
  #open = true

  constructor(
    readonly path: string,
    readonly stats: Stats,
    /** The descriptor behind `path`, or null if entries are checked paths. */
    private readonly descriptor: number | null,
  ) {}

  /** Whether `path` names the inode itself rather than a path in the tree. */
  get pinned(): boolean {
    return this.descriptor !== null
  }

  /** Lets go of the descriptor; calling it again is harmless. */
  [Symbol.dispose](): void {
    if (this.#open && this.descriptor !== null) closeSync(this.descriptor)
    this.#open = false
  }
}

/**
 * Pins a directory of berth's own. Those above it are trusted.
 *
 * @param followsLink whether it may be a link to a directory
 * @throws the system's error (`ENOENT`, `ENOTDIR`)
 */
export function pinRoot(root: string, byDescriptor: boolean, followsLink = true): PinnedEntry {
  if (byDescriptor) return pin(root, constants.O_DIRECTORY | (followsLink ? 0 : constants.O_NOFOLLOW))
  if (!followsLink && lstatSync(root).isSymbolicLink()) {
    throw Object.assign(new Error(`${root} is a link`), { code: 'ENOTDIR' })
  }
  const path = realpathSync(root)
  return new PinnedEntry(path, lstatSync(path), null)
}

/** Pins an entry of a pinned directory, a link as the link itself. Throws the system's error. */
export function pinChild(dir: PinnedEntry, name: EntryName): PinnedEntry {
  const path = childPath(dir, name)
  if (dir.pinned) return pin(path, constants.O_NOFOLLOW)
  const stats = lstatSync(path)
  if (realpathSync(dir.path) !== dir.path) {
    throw Object.assign(new Error(`${dir.path} was moved`), { code: 'ENOENT' })
  }
  return new PinnedEntry(path.toString(), stats, null)
}

/**
 * Returns the path by which `node:fs` reaches an entry of a pinned directory. If the entry is a link, the caller decides
 * whether to follow it.
 */
export function childPath(dir: PinnedEntry, name: EntryName): string | Buffer {
  return joinNames(dir.path, name)
}

/** Returns a path and a name below it as one path. */
export function joinNames(path: EntryName, name: EntryName): EntryName {
  return typeof path === 'string' && typeof name === 'string'
    ? `${path}/${name}`
    : Buffer.concat([Buffer.from(path), Buffer.from('/'), Buffer.from(name)])
}

/**
 * Opens a pinned regular file for reading; the caller closes the descriptor. `O_NONBLOCK` keeps the call from waiting
 * if a FIFO has replaced a checked path, or a program has reserved the file (`F_SETLEASE` of fcntl(2)): then it throws EAGAIN.
 *
 * @throws the system's error, or ENOENT if another file has replaced the pinned one
 */
export function openForReading(file: PinnedEntry): number {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK
  if (file.pinned) return openSync(file.path, flags)
  const descriptor = openSync(file.path, flags | NO_LINKS)
  const { dev, ino } = fstatSync(descriptor)
  if (dev === file.stats.dev && ino === file.stats.ino) return descriptor
  closeSync(descriptor)
  throw Object.assign(new Error(`${file.path} was replaced`), { code: 'ENOENT' })
}

/**
 * Adds permission bits to a pinned directory if its owner lacks them; root needs none.
 *
 * @returns its earlier permissions if they were changed, else null
 * @throws the system's error
 */
export function addPermissions({ path, stats }: PinnedEntry, bits: number): number | null {
  const mode = stats.mode & 0o7777
  if ((mode & bits) === bits || process.geteuid?.() === 0) return null
  chmodSync(path, mode | bits)
  return mode
}

function pin(path: string | Buffer, flags: number): PinnedEntry {
  const inode = openInode(path, flags)
  return new PinnedEntry(inode.path, inode.stats, inode.descriptor)
}
