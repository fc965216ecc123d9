import { closeSync, constants, fchmodSync, openSync, renameSync, statSync, unlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../../runtime/error-info.ts'
import {
  type DirectoryEntry,
  type Staging,
  type WatchOptions,
  type Workspace,
  type WorkspaceEntry,
  WorkspaceError,
  type WorkspaceFile,
  type WorkspaceWatch,
} from '../workspace.ts'
import { readInto, writeFrom } from './descriptor-io.ts'
import { readDirectory } from './directories.ts'
import { identityOf, LocalFile } from './file.ts'
import { type Jail, type LocatedPath, type LocateOptions, locate, toWorkspaceError } from './jail.ts'
import { listFiles } from './list.ts'
import { invalid, parsePath, quote } from './path.ts'
import { childPath, openForReading, type PinnedEntry, pinRoot } from './pinned.ts'
import { placeDirectory } from './place.ts'
import { removeEntry } from './remove.ts'
import { STAGING, StagingArea } from './staging.ts'
import { isTemporary, temporaryName } from './temporary.ts'
import { measureUsage } from './usage.ts'

/** Bytes moved by one turn through the thread pool. */
const CHUNK = 16 * 1024 * 1024
/** How often a write begins again when a directory on the way is removed under it. */
const MAX_ATTEMPTS = 8

/**
 * A workspace that is a directory of this machine. Every access walks from that directory by descriptors and follows
 * no link by itself (`jail.ts`), so processes on the server can change the tree at any time without leading berth
 * outside. Metadata calls are synchronous, in slices of a few milliseconds; contents move through the thread pool.
 */
export class LocalWorkspace implements Workspace {
  readonly #jail: Jail
  readonly #area: StagingArea

  /**
   * @param root the workspace's directory, absolute; must exist before the first call
   * @param byDescriptor whether `/proc/self/fd` is available; `PinnedEntry` says what is weaker without it
   */
  constructor(root: string, byDescriptor: boolean = process.platform === 'linux') {
    this.#jail = { root, byDescriptor }
    this.#area = new StagingArea(join(dirname(root), STAGING), byDescriptor)
  }

  /** See `Workspace.list`. Skips directories that cannot be opened and names that are not UTF-8. */
  async list(options: { all: boolean }): Promise<string[]> {
    using root = this.#root()
    return await listFiles(root, options.all)
  }

  /** See `Workspace.read`. Reads a growing file up to the size it had when it was opened. */
  async read(path: string): Promise<Uint8Array> {
    const { descriptor, size } = this.#openFile(path)
    try {
      const bytes = new Uint8Array(size)
      let filled = 0
      while (filled < size) {
        const length = Math.min(CHUNK, size - filled)
        const bytesRead = await readInto(descriptor, bytes, filled, length, filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return filled === size ? bytes : bytes.subarray(0, filled)
    } finally {
      closeSync(descriptor)
    }
  }

  /** See `Workspace.open`. */
  async open(path: string): Promise<WorkspaceFile> {
    const { parent, entry, mustBeDirectory } = this.#locate(path, { follow: true })
    parent[Symbol.dispose]()
    if (entry?.stats.isFile() && !mustBeDirectory) return new LocalFile(entry, path)
    entry?.[Symbol.dispose]()
    throw entry === null ? missing(path) : notAFile(path)
  }

  /**
   * See `Workspace.unchanged`. Makes one call that follows links, wherever they lead: only the inode that was reached
   * inside, with its old times, has the same identity.
   */
  async unchanged(path: string, identity: string): Promise<boolean> {
    const { names } = parsePath(path)
    try {
      const stats = statSync(`${this.#jail.root}/${names.join('/')}`, { throwIfNoEntry: false })
      return stats !== undefined && identityOf(stats) === identity
    } catch {
      return false
    }
  }

  /** See `Workspace.entries`. */
  async entries(path: string): Promise<DirectoryEntry[]> {
    using place = this.#locate(path, { follow: true })
    if (place.entry === null) throw missing(path)
    if (!place.entry.stats.isDirectory())
      throw new WorkspaceError('not_a_file', `${quote(path)} is not a folder.`)
    try {
      const listed = await readDirectory(place.entry)
      return listed
        .flatMap(({ name, kind }) => (typeof name === 'string' && !isTemporary(name) ? [{ name, kind }] : []))
        .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
    } catch (error) {
      throw toWorkspaceError(error, path)
    }
  }

  /**
   * See `Workspace.write`. Also throws `WorkspaceError` `root` and `disk_full`. A replaced file keeps its permission
   * bits; other hard links to it keep the old bytes. A link inside the workspace stays, its target is replaced.
   */
  async write(path: string, content: Uint8Array): Promise<void> {
    const { names, mustBeDirectory } = parsePath(path)
    if (isTemporary(names.at(-1) ?? '')) throw invalid(path, 'is a name that berth keeps for itself')
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#replace(path, content, !mustBeDirectory)
      } catch (error) {
        // Parents are created, except for a path that can only name a directory, so nothing else can be missing.
        if (error instanceof WorkspaceError && error.fault === 'missing') throw notAFile(path)
        if (codeOf(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw toWorkspaceError(error, path)
      }
    }
  }

  /** See `Workspace.remove`. Removes a link itself, not its target; throws `outside` for one that leads out. */
  async remove(path: string): Promise<void> {
    using place = this.#locate(path, { follow: false })
    if (place.name === '') throw theRoot(path)
    const stats = place.entry?.stats
    if (stats === undefined || (place.mustBeDirectory && stats.isFile())) throw missing(path)
    if (stats.isSymbolicLink()) this.#refuseLinkOut(path)
    try {
      await removeEntry(place.parent, place.name)
    } catch (error) {
      if (codeOf(error) === 'ENOTEMPTY') {
        throw new Error(
          `${quote(path)} is still being written to. Stop the server or the process, then remove it again.`,
        )
      }
      throw toWorkspaceError(error, path)
    }
  }

  /** See `Workspace.stat`. Throws `WorkspaceError` `outside`, `invalid`. */
  async stat(path: string): Promise<WorkspaceEntry | null> {
    try {
      using place = this.#locate(path, { follow: true })
      const stats = place.entry?.stats
      if (stats === undefined) return null
      if (stats.isDirectory()) return { kind: 'directory', size: 0 }
      if (place.mustBeDirectory) return null
      return stats.isFile() ? { kind: 'file', size: stats.size } : { kind: 'other', size: 0 }
    } catch (error) {
      if (error instanceof WorkspaceError && (error.fault === 'missing' || error.fault === 'not_a_file'))
        return null
      throw error
    }
  }

  /** See `Workspace.staging`. */
  async staging(): Promise<Staging> {
    return this.#area.make()
  }

  /** See `Workspace.place`. */
  place(dir: string, path: string): Promise<void> {
    return placeDirectory(this.#jail, this.#area, dir, path)
  }

  /** See `Workspace.watch`. */
  async watch(path: string, options: WatchOptions): Promise<WorkspaceWatch> {
    using place = this.#locate(path, { follow: false })
    if (!place.entry?.stats.isDirectory()) throw missing(path)
    const { watchDirectory } = await import('./watch.ts')
    return await watchDirectory(place.entry.path.toString(), options)
  }

  /** See `Workspace.usage`; directories count too, the workspace's own does not. */
  async usage(): Promise<number> {
    using root = this.#root()
    return await measureUsage(root)
  }

  #root(): PinnedEntry {
    return pinRoot(this.#jail.root, this.#jail.byDescriptor)
  }

  #locate(path: string, options: LocateOptions): LocatedPath {
    return locate(this.#jail, path, options)
  }

  #openFile(path: string): { descriptor: number; size: number } {
    using place = this.#locate(path, { follow: true })
    if (place.entry === null) throw missing(path)
    if (!place.entry.stats.isFile() || place.mustBeDirectory) throw notAFile(path)
    try {
      return { descriptor: openForReading(place.entry), size: place.entry.stats.size }
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? missing(path) : toWorkspaceError(error, path)
    }
  }

  async #replace(path: string, content: Uint8Array, makeParents: boolean): Promise<void> {
    using place = this.#locate(path, { follow: true, makeParents })
    if (place.name === '') throw theRoot(path)
    const replaced = place.entry?.stats
    if (place.mustBeDirectory || (replaced !== undefined && !replaced.isFile())) throw notAFile(path)
    const temporary = childPath(place.parent, temporaryName())
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const descriptor = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644)
    try {
      try {
        if (replaced !== undefined) fchmodSync(descriptor, replaced.mode & 0o777)
        await writeAll(descriptor, content)
      } finally {
        closeSync(descriptor)
      }
      renameSync(temporary, childPath(place.parent, place.name))
    } catch (error) {
      discard(temporary)
      throw error
    }
  }

  #refuseLinkOut(path: string): void {
    try {
      this.#locate(path, { follow: true })[Symbol.dispose]()
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      if (error.fault === 'outside') throw error
    }
  }
}

async function writeAll(descriptor: number, content: Uint8Array): Promise<void> {
  let written = 0
  while (written < content.length) {
    const length = Math.min(CHUNK, content.length - written)
    written += await writeFrom(descriptor, content, written, length, written)
  }
}

function discard(path: string | Buffer): void {
  try {
    unlinkSync(path)
  } catch {
    // Already gone; the error being thrown says more.
  }
}

const missing = (path: string) => new WorkspaceError('missing', `${quote(path)} does not exist.`)
const notAFile = (path: string) => new WorkspaceError('not_a_file', `${quote(path)} is not a regular file.`)
const theRoot = (path: string) =>
  new WorkspaceError('root', `${quote(path)} is the workspace itself. Name a file or folder in it.`)
