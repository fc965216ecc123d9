import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { canSkip, DirectoryChain, type ListedEntry, readDirectory } from './directories.ts'
import { Pace } from './pace.ts'
import { childPath, type PinnedEntry } from './pinned.ts'
import { isStale } from './temporary.ts'

const READ_AND_SEARCH = 0o500

/** A directory under way: the entries still to count, and the mode to give back to a directory that was closed. */
interface Frame {
  entries: ListedEntry[]
  closedMode: number | null
}

/**
 * Measures the bytes that the file system has allocated for everything below a pinned directory: files, links and
 * directories, each inode once, without the directory itself (an empty workspace uses nothing). Opens directories
 * that are closed to berth's user (`chmod 000`) for the time of the count; otherwise they would bypass the limit.
 *
 * Also removes the temporary files of killed berths, because this walk looks at every file and runs after commands
 * anyway.
 */
export async function measureUsage(root: PinnedEntry): Promise<number> {
  const pace = new Pace()
  const counted = new Set<string>()
  using chain = new DirectoryChain(root)
  let bytes = 0
  const frames: Frame[] = [{ entries: await readDirectory(root), closedMode: null }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    try {
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) leave(chain, frame)
      } else if (entry.kind === 'directory') {
        const dir = chain.enter(entry.name)
        bytes += dir.stats.blocks * 512
        const below: Frame = { entries: [], closedMode: null }
        frames.push(below)
        below.closedMode = openClosed(dir)
        below.entries = await readDirectory(dir)
      } else {
        bytes += measureFile(chain.current, entry, counted)
      }
    } catch (error) {
      if (!canSkip(error)) throw error
    }
  }
  return bytes
}

function leave(chain: DirectoryChain, frame: Frame): void {
  try {
    if (frame.closedMode !== null) chmodSync(chain.current.path, frame.closedMode)
  } finally {
    chain.leave()
  }
}

/** Makes an unreadable directory readable and returns its previous mode; returns null if it was readable. */
function openClosed(dir: PinnedEntry): number | null {
  const mode = dir.stats.mode & 0o7777
  if (process.geteuid?.() === 0 || (mode & READ_AND_SEARCH) === READ_AND_SEARCH) return null
  chmodSync(dir.path, mode | READ_AND_SEARCH)
  return mode
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
