import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { holdsInodes } from '../../system/files.ts'
import {
  type DirectoryEntry,
  MAX_READ_BYTES,
  type ManifestEntry,
  type MergeOptions,
  type Staging,
  type StagingOptions,
  type WatchOptions,
  type Workspace,
  type WorkspaceEntry,
  WorkspaceError,
  type WorkspaceFile,
  type WorkspaceWatch,
} from '../workspace.ts'
import { identityOf, PinnedFile } from './file.ts'
import { Listing } from './listing.ts'
import { childPath, type PinnedEntry, pinRoot } from './pinned.ts'
import {
  pinWorkspace,
  type ResolvedPath,
  type ResolveOptions,
  resolvePath,
  toWorkspaceError,
  type WorkspaceRoot,
} from './resolve-path.ts'
import { mergeStaged, moveStaged, STAGING, StagingArea } from './staging.ts'
import { isTemporary, TemporaryFile, temporaryName } from './temporary-file.ts'
import { listFiles, measureUsage, removeTreeEntry } from './tree.ts'
import { watchTree } from './watch-directory.ts'
import {
  invalid,
  missing,
  notAFile,
  parseWorkspacePath,
  pathTooLarge,
  plainPaths,
  quote,
  theRoot,
  tooManyEntries,
} from './workspace-path.ts'

/** Bytes that berth itself writes to a server's caches: a directory and a file, a block each. */
const OWN_CACHE_BYTES = 8192

/** Most entries of a directory that are listed. @bound program */
const MAX_ENTRIES = 200_000

/** How often a write begins again when a directory on the way is removed under it. @bound program */
const MAX_ATTEMPTS = 8

/**
 * A workspace that is a directory of this machine. Every access walks from that directory by descriptors and follows
 * no link by itself (`resolve-path.ts`), so processes on the server can change the tree at any time without leading berth
 * outside. Metadata calls are synchronous, in slices of a few milliseconds; contents move through the thread pool.
 */
export class LocalWorkspace implements Workspace {
  readonly #root: WorkspaceRoot
  readonly #area: StagingArea
  readonly #caches: string | null

  /**
   * @param root the workspace's directory, absolute; must exist before the first call
   * @param byDescriptor whether `/proc/self/fd` is available; `PinnedEntry` says what is weaker without it
   * @param staging directory for what is prepared, absolute, on the workspace's file system; it may be the workspace
   * @param caches directory beside it that counts as its usage, absolute; null for none
   */
  constructor(
    root: string,
    byDescriptor: boolean = holdsInodes,
    staging: string = join(dirname(root), STAGING),
    caches: string | null = null,
  ) {
    this.#caches = caches
    this.#root = { path: root, byDescriptor }
    this.#area = new StagingArea(staging, byDescriptor)
  }

  /** See `Workspace.list`. Skips directories that cannot be opened and names that are not UTF-8. */
  async list(options: { all: boolean }): Promise<string[]> {
    using root = pinWorkspace(this.#root)
    return await listFiles(root, options.all)
  }

  /** See `Workspace.manifest`. */
  async manifest(directory: string, paths: readonly string[] | null): Promise<ManifestEntry[]> {
    using root = directory === '' ? pinWorkspace(this.#root) : this.#pinDirectory(directory)
    const { describeEntries } = await import('./manifest.ts')
    return await describeEntries(
      root,
      paths === null ? await listFiles(root, false, true) : plainPaths(paths),
    )
  }

  /** See `Workspace.read`. Reads a growing file up to the size it had when it was opened. */
  async read(path: string, most = MAX_READ_BYTES): Promise<Uint8Array> {
    using file = await this.open(path)
    if (file.size > most) throw pathTooLarge(path, file.size, most)
    return await file.read(0, file.size)
  }

  /** See `Workspace.open`. */
  async open(path: string): Promise<WorkspaceFile> {
    const { parent, entry, mustBeDirectory } = this.#resolve(path, { follow: true })
    parent[Symbol.dispose]()
    if (entry?.stats.isFile() && !mustBeDirectory) return new PinnedFile(entry, path)
    entry?.[Symbol.dispose]()
    throw entry === null ? missing(path) : notAFile(path)
  }

  /**
   * See `Workspace.unchanged`. Makes one call that follows links, wherever they lead: only the inode that was reached
   * inside, with its old times, has the same identity.
   */
  async unchanged(path: string, identity: string): Promise<boolean> {
    const { names } = parseWorkspacePath(path)
    try {
      const stats = statSync(`${this.#root.path}/${names.join('/')}`, { throwIfNoEntry: false })
      return stats !== undefined && identityOf(stats) === identity
    } catch {
      // It cannot be reached, so it is not the same.
      return false
    }
  }

  /** See `Workspace.entries`. */
  async entries(path: string): Promise<DirectoryEntry[]> {
    using found = this.#resolve(path, { follow: true })
    if (found.entry === null) throw missing(path)
    if (!found.entry.stats.isDirectory())
      throw new WorkspaceError('not_a_file', `${quote(path)} is not a directory.`)
    try {
      using listing = await Listing.open(found.entry)
      const entries: DirectoryEntry[] = []
      for (let entry = listing.pop(); entry !== undefined; entry = listing.pop()) {
        const { name, kind } = entry
        if (typeof name !== 'string' || isTemporary(name)) continue
        if (entries.length === MAX_ENTRIES) throw tooManyEntries(path)
        entries.push({ name, kind })
      }
      return entries.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
    } catch (error) {
      throw toWorkspaceError(error, path)
    }
  }

  /**
   * See `Workspace.write`. Also throws `WorkspaceError` `root` and `disk_full`. A replaced file keeps its permission
   * bits; other hard links to it keep the old bytes. A link inside the workspace stays, its target is replaced.
   */
  async write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const { names } = parseWorkspacePath(path)
    if (isTemporary(names.at(-1) ?? '')) throw invalid(path, 'is a name that berth keeps for itself')
    if (!(content instanceof Uint8Array)) return await this.#writePieces(path, content)
    await this.#replace(path, async ({ parent, entry, name }) => {
      using file = new TemporaryFile(childPath(parent, temporaryName()))
      if (entry !== null) file.setMode(entry.stats.mode & 0o777)
      await file.append(content)
      file.moveTo(childPath(parent, name))
    })
  }

  /** Writes pieces to the staging area first: unlike them, a file can be moved again if a directory goes away. */
  async #writePieces(path: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    this.#refuseToReplace(path)
    using file = this.#area.file()
    for await (const piece of pieces) {
      await file.append(piece).catch((error) => {
        throw toWorkspaceError(error, path)
      })
    }
    await this.#replace(path, async ({ parent, entry, name }) => {
      if (entry !== null) file.setMode(entry.stats.mode & 0o777)
      file.moveTo(childPath(parent, name))
    })
  }

  /** See `Workspace.remove`. Removes a link itself, not its target; throws `outside` for one that leads out. */
  async remove(path: string): Promise<void> {
    using found = this.#resolve(path, { follow: false })
    if (found.name === '') throw theRoot(path)
    const stats = found.entry?.stats
    if (stats === undefined || (found.mustBeDirectory && stats.isFile())) throw missing(path)
    if (stats.isSymbolicLink()) this.#refuseLinkOut(path)
    try {
      await removeTreeEntry(found.parent, found.name)
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
  async staging(options?: StagingOptions): Promise<Staging> {
    return this.#area.make(options)
  }

  /** See `Workspace.stagingNamed`. */
  stagingNamed(name: string): Staging {
    return this.#area.named(name)
  }

  /** See `Workspace.moveIn`. */
  moveIn(dir: string, path: string): Promise<void> {
    return moveStaged(this.#root, this.#area, dir, path)
  }

  /** See `Workspace.mergeIn`. */
  mergeIn(dir: string, path: string, options?: MergeOptions): Promise<void> {
    return mergeStaged(this.#root, this.#area, dir, path, options)
  }

  /** See `Workspace.watch`. */
  async watch(path: string, options: WatchOptions): Promise<WorkspaceWatch> {
    using found = this.#resolve(path, { follow: false })
    if (!found.entry?.stats.isDirectory()) throw missing(path)
    const has = (below: string): boolean => {
      try {
        using inside = this.#resolve(`${path}/${below}`, { follow: false })
        return inside.entry !== null
      } catch {
        // It is gone, or a directory on its way was replaced.
        return false
      }
    }
    return await watchTree({ dir: found.entry, has }, options)
  }

  /** See `Workspace.pack`. */
  async *pack(): AsyncGenerator<Uint8Array> {
    const { packWorkspaceTree } = await import('./pack-tree.ts')
    using root = pinWorkspace(this.#root)
    yield* packWorkspaceTree(root)
  }

  /** See `Workspace.unpack`. */
  async unpack(archive: AsyncIterable<Uint8Array>): Promise<void> {
    const { unpackTree } = await import('./unpack-tree.ts')
    await unpackTree(this.#root, archive)
  }

  /** See `Workspace.usage`; directories count too, the workspace's own does not. */
  async usage(): Promise<number> {
    using root = pinWorkspace(this.#root)
    const bytes = await measureUsage(root)
    const path = this.#caches
    using caches = path === null ? null : ifPresent(() => pinRoot(path, this.#root.byDescriptor, false))
    return caches === null ? bytes : bytes + Math.max(0, (await measureUsage(caches)) - OWN_CACHE_BYTES)
  }

  /** Pins a directory. The caller disposes of it. Throws `WorkspaceError`. */
  #pinDirectory(path: string): PinnedEntry {
    const { parent, entry } = this.#resolve(path, { follow: true })
    if (entry !== parent) parent[Symbol.dispose]()
    if (entry?.stats.isDirectory()) return entry
    entry?.[Symbol.dispose]()
    throw entry === null
      ? missing(path)
      : new WorkspaceError('not_a_file', `${quote(path)} is not a directory.`)
  }

  #resolve(path: string, options: ResolveOptions): ResolvedPath {
    return resolvePath(this.#root, path, options)
  }

  /** Makes the directories on the way to a file and has `put` put it there, again if they are removed meanwhile. */
  async #replace(path: string, put: (target: ResolvedPath) => Promise<void>): Promise<void> {
    const makeParents = !parseWorkspacePath(path).mustBeDirectory
    for (let attempt = 1; ; attempt += 1) {
      try {
        using target = this.#resolveFile(path, { follow: true, makeParents })
        return await put(target)
      } catch (error) {
        // Parents are created, except for a path that can only name a directory, so nothing else can be missing.
        if (error instanceof WorkspaceError && error.fault === 'missing') throw notAFile(path)
        if (codeOf(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw toWorkspaceError(error, path)
      }
    }
  }

  /** Resolves a path at which there is a regular file or nothing. Throws `WorkspaceError`. */
  #resolveFile(path: string, options: ResolveOptions): ResolvedPath {
    const found = this.#resolve(path, options)
    const isOther = found.mustBeDirectory || (found.entry !== null && !found.entry.stats.isFile())
    if (found.name !== '' && !isOther) return found
    found[Symbol.dispose]()
    throw found.name === '' ? theRoot(path) : notAFile(path)
  }

  /** Throws what would keep a file from being written, before its content is read. */
  #refuseToReplace(path: string): void {
    try {
      this.#resolveFile(path, { follow: true })[Symbol.dispose]()
    } catch (error) {
      if (!(error instanceof WorkspaceError) || error.fault !== 'missing') throw error
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
