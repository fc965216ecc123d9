import {
  closeSync,
  constants,
  fchmodSync,
  openSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
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
import { invalid, parsePath, quote } from './path.ts'
import { childPath, openForReading, type PinnedEntry, pinRoot } from './pinned.ts'
import {
  type ResolvedPath,
  type ResolveOptions,
  resolvePath,
  toWorkspaceError,
  type WorkspaceRoot,
} from './resolve-path.ts'
import { moveStaged, STAGING, StagingArea } from './staging.ts'
import { isTemporary, temporaryName } from './temporary.ts'
import { listFiles, measureUsage, removeEntry } from './tree.ts'

/** Bytes moved by one turn through the thread pool. */
const CHUNK = 16 * 1024 * 1024
/** How often a write begins again when a directory on the way is removed under it. */
const MAX_ATTEMPTS = 8

/**
 * A workspace that is a directory of this machine. Every access walks from that directory by descriptors and follows
 * no link by itself (`resolve-path.ts`), so processes on the server can change the tree at any time without leading berth
 * outside. Metadata calls are synchronous, in slices of a few milliseconds; contents move through the thread pool.
 */
export class LocalWorkspace implements Workspace {
  readonly #root: WorkspaceRoot
  readonly #area: StagingArea

  /**
   * @param root the workspace's directory, absolute; must exist before the first call
   * @param byDescriptor whether `/proc/self/fd` is available; `PinnedEntry` says what is weaker without it
   */
  constructor(root: string, byDescriptor: boolean = process.platform === 'linux') {
    this.#root = { path: root, byDescriptor }
    this.#area = new StagingArea(join(dirname(root), STAGING), byDescriptor)
  }

  /** See `Workspace.list`. Skips directories that cannot be opened and names that are not UTF-8. */
  async list(options: { all: boolean }): Promise<string[]> {
    using root = this.#pinRoot()
    return await listFiles(root, options.all)
  }

  /** See `Workspace.read`. Reads a growing file up to the size it had when it was opened. */
  async read(path: string): Promise<Uint8Array> {
    using file = await this.open(path)
    return await file.read(0, file.size)
  }

  /** See `Workspace.open`. */
  async open(path: string): Promise<WorkspaceFile> {
    const { parent, entry, mustBeDirectory } = this.#resolve(path, { follow: true })
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
      const stats = statSync(`${this.#root.path}/${names.join('/')}`, { throwIfNoEntry: false })
      return stats !== undefined && identityOf(stats) === identity
    } catch {
      return false
    }
  }

  /** See `Workspace.entries`. */
  async entries(path: string): Promise<DirectoryEntry[]> {
    using found = this.#resolve(path, { follow: true })
    if (found.entry === null) throw missing(path)
    if (!found.entry.stats.isDirectory())
      throw new WorkspaceError('not_a_file', `${quote(path)} is not a folder.`)
    try {
      const listed = await readDirectory(found.entry)
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
    using found = this.#resolve(path, { follow: false })
    if (found.name === '') throw theRoot(path)
    const stats = found.entry?.stats
    if (stats === undefined || (found.mustBeDirectory && stats.isFile())) throw missing(path)
    if (stats.isSymbolicLink()) this.#refuseLinkOut(path)
    try {
      await removeEntry(found.parent, found.name)
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
      using found = this.#resolve(path, { follow: true })
      const stats = found.entry?.stats
      if (stats === undefined) return null
      if (stats.isDirectory()) return { kind: 'directory', size: 0 }
      if (found.mustBeDirectory) return null
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

  /** See `Workspace.moveIn`. */
  moveIn(dir: string, path: string): Promise<void> {
    return moveStaged(this.#root, this.#area, dir, path)
  }

  /** See `Workspace.watch`. */
  async watch(path: string, options: WatchOptions): Promise<WorkspaceWatch> {
    using found = this.#resolve(path, { follow: false })
    if (!found.entry?.stats.isDirectory()) throw missing(path)
    return await watchDirectory(found.entry.path.toString(), options)
  }

  /** See `Workspace.usage`; directories count too, the workspace's own does not. */
  async usage(): Promise<number> {
    using root = this.#pinRoot()
    return await measureUsage(root)
  }

  #pinRoot(): PinnedEntry {
    return pinRoot(this.#root.path, this.#root.byDescriptor)
  }

  #resolve(path: string, options: ResolveOptions): ResolvedPath {
    return resolvePath(this.#root, path, options)
  }

  async #replace(path: string, content: Uint8Array, makeParents: boolean): Promise<void> {
    using found = this.#resolve(path, { follow: true, makeParents })
    if (found.name === '') throw theRoot(path)
    const replaced = found.entry?.stats
    if (found.mustBeDirectory || (replaced !== undefined && !replaced.isFile())) throw notAFile(path)
    const temporary = childPath(found.parent, temporaryName())
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const descriptor = openSync(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644)
    try {
      try {
        if (replaced !== undefined) fchmodSync(descriptor, replaced.mode & 0o777)
        await writeAll(descriptor, content)
      } finally {
        closeSync(descriptor)
      }
      renameSync(temporary, childPath(found.parent, found.name))
    } catch (error) {
      discard(temporary)
      throw error
    }
  }

  #refuseLinkOut(path: string): void {
    try {
      this.#resolve(path, { follow: true })[Symbol.dispose]()
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

/**
 * Reports changes below an existing directory of a workspace. Links are not followed, so nothing the server plants
 * leads the watch outside.
 *
 * Uses chokidar, loaded with the first watch, because systems differ in how they report renames, atomic saves and new
 * directories.
 */
async function watchDirectory(dir: string, { ignored, onChange }: WatchOptions): Promise<WorkspaceWatch> {
  const root = realpathSync(dir)
  const { watch } = await import('chokidar')
  const watcher = watch(root, {
    followSymlinks: false,
    ignoreInitial: true,
    ignorePermissionErrors: true,
    // Reports a file once it is in place, not while it is moved.
    atomic: true,
    ignored: (path) => path !== root && ignored(relative(root, path)),
  })
  const ready = Promise.withResolvers<void>()
  watcher.on('ready', ready.resolve)
  // A limit of the system (inotify): changes are missed, which harms nothing.
  watcher.on('error', () => ready.resolve())
  watcher.on('all', (_event, path) => onChange(relative(root, path)))
  await ready.promise
  return { close: () => watcher.close() }
}

/** A regular file of a workspace, pinned; it is opened for reading when it is first read. See `WorkspaceFile`. */
class LocalFile implements WorkspaceFile {
  readonly size: number
  readonly modifiedAt: number
  readonly #stats: Stats
  readonly #entry: PinnedEntry
  #descriptor: number | null = null
  #reading = 0
  #disposed = false

  /** @param entry a regular file; it is disposed of with this @param path for messages */
  constructor(
    entry: PinnedEntry,
    private readonly path: string,
  ) {
    this.#entry = entry
    this.#stats = entry.stats
    this.size = entry.stats.size
    this.modifiedAt = entry.stats.mtimeMs
  }

  get identity(): string {
    return identityOf(this.#stats)
  }

  get changedAt(): number {
    return this.#stats.ctimeMs
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const descriptor = this.#openDescriptor()
    const bytes = new Uint8Array(length)
    let filled = 0
    this.#reading += 1
    try {
      while (filled < length) {
        const most = Math.min(CHUNK, length - filled)
        const bytesRead = await readInto(descriptor, bytes, filled, most, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
    } finally {
      this.#reading -= 1
      this.#close()
    }
    return filled === length ? bytes : bytes.subarray(0, filled)
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    this.#close()
  }

  #openDescriptor(): number {
    try {
      const descriptor = this.#descriptor ?? openForReading(this.#entry)
      this.#descriptor = descriptor
      return descriptor
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? missing(this.path) : toWorkspaceError(error, this.path)
    }
  }

  /** Not while it is read: its descriptor could name another file by then. */
  #close(): void {
    if (!this.#disposed || this.#reading > 0) return
    this.#entry[Symbol.dispose]()
    if (this.#descriptor !== null) closeSync(this.#descriptor)
    this.#descriptor = null
  }
}

/** See `WorkspaceFile.identity`. */
const identityOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string =>
  `${dev}-${ino}-${size}-${mtimeMs}-${ctimeMs}`
