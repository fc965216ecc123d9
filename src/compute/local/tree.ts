/**
 * The walks over a directory's whole tree: list, measure, remove. Each goes down by `DirectoryChain`, so no process on
 * the server can lead it outside, and skips or retries what changes meanwhile.
 */

import { chmodSync, lstatSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { Pace } from '../../runtime/pace.ts'
import { WorkspaceError } from '../workspace.ts'
import { canSkip, DirectoryChain } from './directories.ts'
import { type ListedEntry, Listing } from './listing.ts'
import { addPermissions, childPath, type EntryName, type PinnedEntry, pinChild } from './pinned.ts'
import { isStale, isTemporary, temporaryName } from './temporary-file.ts'
import { MAX_PATH_BYTES } from './workspace-path.ts'

const LEFT_OUT = new Set(['.git', 'node_modules'])

/**
 * Most files and directories of a listing, and characters of its paths. With hard links a program can make any number.
 * @bound program
 */
const MAX_LISTED = 500_000
const MAX_LISTED_BYTES = 64 * 1024 * 1024

const tooMany = (): WorkspaceError =>
  new WorkspaceError(
    'too_large',
    `The workspace has more than ${MAX_LISTED} files, or very long paths: these are not listed. Use a command, such as find.`,
  )

/** A directory of a listing: its relevant entries, sorted, and the next one to visit. */
interface ListFrame {
  prefix: string
  entries: SortedEntry[]
  next: number
}

interface SortedEntry {
  name: string
  /** The name as paths below continue it: a directory's with `/`. Sorting by it sorts the paths. */
  key: string
  dir: boolean
}

/**
 * Lists the regular files below a pinned directory as relative paths, by code point. Does not follow links. Skips
 * unreadable directories, names that are not UTF-8 and paths beyond the system's limit, which no path of the API
 * could name. Throws `WorkspaceError` `too_large`.
 *
 * @param all whether `.git` and `node_modules` directories are listed too
 * @param others whether links, sockets, pipes and devices are listed too
 */
export async function listFiles(root: PinnedEntry, all: boolean, others = false): Promise<string[]> {
  const files: string[] = []
  const pace = new Pace()
  using chain = new DirectoryChain(root)
  let names = 0
  let bytes = 0
  const arrange = async (listing: Listing): Promise<SortedEntry[]> => {
    const entries: SortedEntry[] = []
    for (let entry = listing.pop(); entry !== undefined; entry = listing.pop()) {
      if (pace.due) await pace.rest()
      const { name, kind } = entry
      if (typeof name !== 'string' || (kind === 'other' && !others) || isTemporary(name)) continue
      if (kind === 'directory' && !all && LEFT_OUT.has(name)) continue
      names += 1
      if (names > MAX_LISTED) throw tooMany()
      entries.push({ name, key: kind === 'directory' ? `${name}/` : name, dir: kind === 'directory' })
    }
    return sortEntries(entries)
  }
  const frames: ListFrame[] = [{ prefix: '', entries: await arrange(await chain.list(root)), next: 0 }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries[frame.next]
    frame.next += 1
    if (pace.due) await pace.rest()
    if (entry === undefined) {
      frames.pop()
      if (frames.length > 0) chain.leave()
    } else if (frame.prefix.length + entry.name.length > MAX_PATH_BYTES) {
      // No call of the API could name it, and a listing of such paths could fill memory.
    } else if (!entry.dir) {
      bytes += frame.prefix.length + entry.name.length
      if (bytes > MAX_LISTED_BYTES) throw tooMany()
      files.push(frame.prefix + entry.name)
    } else {
      const depth = chain.depth
      try {
        const dir = chain.enter(entry.name)
        const entries = await arrange(await chain.list(dir))
        frames.push({ prefix: frame.prefix + entry.key, entries, next: 0 })
      } catch (error) {
        if (chain.depth > depth) chain.leave()
        if (!canSkip(error)) throw error
      }
    }
  }
  return files
}

/** Sorts names as the paths that they begin. */
function sortEntries(entries: SortedEntry[]): SortedEntry[] {
  // Beyond the Basic Multilingual Plane the order of UTF-16 units differs from that of code points.
  const isPlain = entries.every(({ name }) => !/[\ud800-\udfff]/.test(name))
  const compare = isPlain
    ? (a: SortedEntry, b: SortedEntry) => (a.key < b.key ? -1 : 1)
    : (a: SortedEntry, b: SortedEntry) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))
  return entries.sort(compare)
}

const READ_AND_SEARCH = 0o500

/** A directory of a measurement: the entries still to count, and the mode to give back to a directory that was closed. */
interface UsageFrame {
  entries: Listing
  closedMode: number | null
}

/**
 * Measures the bytes that the file system has allocated for everything below a pinned directory: files, links and
 * directories, each inode once, without the directory itself (an empty workspace uses nothing). Opens directories
 * that are closed to berth's user (`chmod 000`) for the time of the count; otherwise they would bypass the limit.
 *
 * Also removes what killed berths had under temporary names, because this walk looks at every file and runs after commands
 * anyway.
 */
export async function measureUsage(root: PinnedEntry): Promise<number> {
  const pace = new Pace()
  const counted = new Set<string>()
  using chain = new DirectoryChain(root)
  let bytes = 0
  const frames: UsageFrame[] = [{ entries: await chain.list(root), closedMode: null }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    try {
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) leaveMeasured(chain, frame)
      } else if (entry.kind === 'directory' && isStale(String(entry.name))) {
        await removeTreeEntry(chain.current, entry.name)
      } else if (entry.kind === 'directory') {
        const dir = chain.enter(entry.name)
        bytes += dir.stats.blocks * 512
        const below: UsageFrame = { entries: Listing.of(dir), closedMode: null }
        frames.push(below)
        below.closedMode = addPermissions(dir, READ_AND_SEARCH)
        below.entries = await chain.list(dir)
      } else {
        bytes += measureFile(chain.current, entry, counted)
      }
    } catch (error) {
      if (!canSkip(error)) throw error
    }
  }
  return bytes
}

function leaveMeasured(chain: DirectoryChain, frame: UsageFrame): void {
  try {
    if (frame.closedMode !== null) chmodSync(chain.current.path, frame.closedMode)
  } finally {
    chain.leave()
  }
}

function measureFile(dir: PinnedEntry, entry: ListedEntry, counted: Set<string>): number {
  const path = childPath(dir, entry.name)
  const stats = lstatSync(path)
  if (typeof entry.name === 'string' && isStale(entry.name) && stats.isFile()) {
    unlinkSync(path)
    return 0
  }
  if (stats.nlink > 1) {
    const inode = `${stats.dev}:${stats.ino}`
    if (counted.has(inode)) return 0
    counted.add(inode)
  }
  return stats.blocks * 512
}

/** How often one entry that changes meanwhile is tried again before the removal gives up. @bound program */
const MAX_PASSES = 100
/** Passes after which a directory is renamed, so processes that write there by its path no longer find it. */
const PASSES_IN_PLACE = 5
const ALL_PERMISSIONS = 0o700

/** A directory of a removal: the entries still to remove, and how often each had to be tried again. */
interface RemovalFrame {
  entries: Listing
  passes: Map<EntryName, number>
}

/**
 * Removes an entry of a pinned directory, and a directory with everything below it. Links are removed, never
 * followed. Directories that berth's user may not enter or change are made accessible first. An entry that is already
 * gone is no error. Throws the system's error; `ENOTEMPTY` if a process keeps writing into a directory.
 */
export async function removeTreeEntry(parent: PinnedEntry, name: EntryName): Promise<void> {
  const pace = new Pace()
  using chain = new DirectoryChain(parent)
  const frames: RemovalFrame[] = [newFrame(Listing.of(parent, [{ name, kind: kindOf(parent, name) }]))]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    try {
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) removeEmptied(chain, chain.leave(), frames)
      } else if (entry.kind === 'directory') {
        const dir = chain.enter(entry.name)
        frames.push(newFrame(Listing.of(dir)))
        addPermissions(dir, ALL_PERMISSIONS)
        frames[frames.length - 1] = newFrame(await chain.list(dir))
      } else {
        unlinkSync(childPath(chain.current, entry.name))
      }
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT') continue
      // Since it was listed, a file has replaced a directory, or a directory a file.
      // That directory may be gone again by now: EISDIR alone says that it was one.
      const swapped =
        entry &&
        (entry.kind === 'directory'
          ? code === 'ENOTDIR'
          : code === 'EISDIR' || isDirectory(chain, entry.name))
      if (!swapped) throw error
      retry(frame, entry.name, entry.kind === 'directory' ? 'file' : 'directory', error)
    }
  }
}

const newFrame = (entries: Listing): RemovalFrame => ({ entries, passes: new Map() })

/** Removes a directory that was emptied, or has its parent look at it again when it was written into since. */
function removeEmptied(chain: DirectoryChain, name: EntryName, frames: RemovalFrame[]): void {
  try {
    rmdirSync(childPath(chain.current, name))
  } catch (error) {
    const above = frames.at(-1)
    const changed = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')
    if (above === undefined || !changed) throw error
    if ((above.passes.get(name) ?? 0) < PASSES_IN_PLACE || isTemporary(String(name))) {
      retry(above, name, 'directory', error)
      return
    }
    const aside = temporaryName()
    renameSync(childPath(chain.current, name), childPath(chain.current, aside))
    above.entries.push({ name: aside, kind: 'directory' })
  }
}

function retry(frame: RemovalFrame, name: EntryName, kind: ListedEntry['kind'], error: unknown): void {
  const passes = (frame.passes.get(name) ?? 0) + 1
  if (passes > MAX_PASSES) throw error
  frame.passes.set(name, passes)
  frame.entries.push({ name, kind })
}

function isDirectory(chain: DirectoryChain, name: EntryName): boolean {
  return kindOf(chain.current, name) === 'directory'
}

function kindOf(dir: PinnedEntry, name: EntryName): ListedEntry['kind'] {
  try {
    using entry = pinChild(dir, name)
    return entry.stats.isDirectory() ? 'directory' : 'file'
  } catch {
    // It was removed meanwhile, or is closed to this user.
    return 'other'
  }
}
