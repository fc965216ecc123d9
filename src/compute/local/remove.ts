import { chmodSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { DirectoryChain, type ListedEntry, readDirectory } from './directories.ts'
import { Pace } from './pace.ts'
import { childPath, type EntryName, type PinnedEntry, pinChild } from './pinned.ts'
import { isTemporary, temporaryName } from './temporary.ts'

/** How often one entry that changes meanwhile is tried again before the removal gives up. */
const MAX_PASSES = 100
/** Passes after which a directory is renamed, so processes that write there by its path no longer find it. */
const PASSES_IN_PLACE = 5
const ALL_RIGHTS = 0o700

/** A directory of the walk: the entries still to remove, and how often each had to be tried again. */
interface Frame {
  entries: ListedEntry[]
  passes: Map<EntryName, number>
}

/**
 * Removes an entry of a pinned directory, and a directory with everything below it. Links are removed, never
 * followed. Directories that berth's user may not enter or change are made accessible first. An entry that is already
 * gone is no error. Throws the system's error; `ENOTEMPTY` if a process keeps writing into a directory.
 */
export async function removeEntry(parent: PinnedEntry, name: EntryName): Promise<void> {
  const pace = new Pace()
  using chain = new DirectoryChain(parent)
  const frames: Frame[] = [newFrame([{ name, kind: kindOf(parent, name) }])]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    try {
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) removeEmptied(chain, chain.leave(), frames)
      } else if (entry.kind === 'directory') {
        const dir = chain.enter(entry.name)
        frames.push(newFrame([]))
        openClosed(dir)
        frames[frames.length - 1] = newFrame(await readDirectory(dir))
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
      tryAgain(frame, entry.name, entry.kind === 'directory' ? 'file' : 'directory', error)
    }
  }
}

const newFrame = (entries: ListedEntry[]): Frame => ({ entries, passes: new Map() })

/** Removes a directory that was emptied, or has its parent look at it again when it was written into since. */
function removeEmptied(chain: DirectoryChain, name: EntryName, frames: Frame[]): void {
  try {
    rmdirSync(childPath(chain.current, name))
  } catch (error) {
    const above = frames.at(-1)
    const changed = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')
    if (above === undefined || !changed) throw error
    if ((above.passes.get(name) ?? 0) < PASSES_IN_PLACE || isTemporary(String(name))) {
      tryAgain(above, name, 'directory', error)
      return
    }
    const aside = temporaryName()
    renameSync(childPath(chain.current, name), childPath(chain.current, aside))
    above.entries.push({ name: aside, kind: 'directory' })
  }
}

function tryAgain(frame: Frame, name: EntryName, kind: ListedEntry['kind'], error: unknown): void {
  const passes = (frame.passes.get(name) ?? 0) + 1
  if (passes > MAX_PASSES) throw error
  frame.passes.set(name, passes)
  frame.entries.push({ name, kind })
}

function openClosed(dir: PinnedEntry): void {
  const mode = dir.stats.mode & 0o7777
  if ((mode & ALL_RIGHTS) !== ALL_RIGHTS && process.geteuid?.() !== 0) chmodSync(dir.path, mode | ALL_RIGHTS)
}

function isDirectory(chain: DirectoryChain, name: EntryName): boolean {
  return kindOf(chain.current, name) === 'directory'
}

function kindOf(dir: PinnedEntry, name: EntryName): ListedEntry['kind'] {
  try {
    using entry = pinChild(dir, name)
    return entry.stats.isDirectory() ? 'directory' : 'file'
  } catch {
    return 'other'
  }
}
