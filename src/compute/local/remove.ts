import { chmodSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { FolderChain, type Listed, readFolder } from './folders.ts'
import { Pace } from './pace.ts'
import { childPath, type EntryName, type PinnedEntry, pinChild, systemCode } from './pinned.ts'
import { isTemporary, temporaryName } from './temporary.ts'

/** How often one entry that changes meanwhile is tried again before the removal gives up. */
const MAX_PASSES = 100
/** After so many a folder is renamed: who writes there by its path finds it no more. */
const PASSES_IN_PLACE = 5
const ALL_RIGHTS = 0o700

/** A folder under way: what is still to be removed from it, and how often an entry had to be tried again. */
interface Frame {
  entries: Listed[]
  passes: Map<EntryName, number>
}

/**
 * Removes an entry of a pinned folder, a folder with all below it. Links are removed, never
 * followed. Folders that berth's user may not enter or change are opened first. What is gone already
 * is no error. Throws the system's error; `ENOTEMPTY` when something goes on writing into a folder.
 */
export async function removeEntry(parent: PinnedEntry, name: EntryName): Promise<void> {
  const pace = new Pace()
  using chain = new FolderChain(parent)
  const frames: Frame[] = [newFrame([{ name, kind: kindOf(parent, name) }])]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const entry = frame.entries.pop()
    if (pace.due) await pace.rest()
    try {
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) removeEmptied(chain, chain.leave(), frames)
      } else if (entry.kind === 'folder') {
        const folder = chain.enter(entry.name)
        frames.push(newFrame([]))
        openClosed(folder)
        frames[frames.length - 1] = newFrame(await readFolder(folder))
      } else {
        unlinkSync(childPath(chain.current, entry.name))
      }
    } catch (error) {
      const code = systemCode(error)
      if (code === 'ENOENT') continue
      // A file took the place of a folder since it was listed, or a folder that of a file.
      const swapped = entry && (entry.kind === 'folder' ? code === 'ENOTDIR' : isFolder(chain, entry.name))
      if (!swapped) throw error
      tryAgain(frame, entry.name, entry.kind === 'folder' ? 'file' : 'folder', error)
    }
  }
}

const newFrame = (entries: Listed[]): Frame => ({ entries, passes: new Map() })

/** Removes a folder that was emptied, or has its parent look at it again when it was written into since. */
function removeEmptied(chain: FolderChain, name: EntryName, frames: Frame[]): void {
  try {
    rmdirSync(childPath(chain.current, name))
  } catch (error) {
    const above = frames.at(-1)
    const changed = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')
    if (above === undefined || !changed) throw error
    if ((above.passes.get(name) ?? 0) < PASSES_IN_PLACE || isTemporary(String(name))) {
      tryAgain(above, name, 'folder', error)
      return
    }
    const aside = temporaryName()
    renameSync(childPath(chain.current, name), childPath(chain.current, aside))
    above.entries.push({ name: aside, kind: 'folder' })
  }
}

function tryAgain(frame: Frame, name: EntryName, kind: Listed['kind'], error: unknown): void {
  const passes = (frame.passes.get(name) ?? 0) + 1
  if (passes > MAX_PASSES) throw error
  frame.passes.set(name, passes)
  frame.entries.push({ name, kind })
}

function openClosed(folder: PinnedEntry): void {
  const mode = folder.stats.mode & 0o7777
  if ((mode & ALL_RIGHTS) !== ALL_RIGHTS && process.geteuid?.() !== 0)
    chmodSync(folder.path, mode | ALL_RIGHTS)
}

function isFolder(chain: FolderChain, name: EntryName): boolean {
  return kindOf(chain.current, name) === 'folder'
}

function kindOf(folder: PinnedEntry, name: EntryName): Listed['kind'] {
  try {
    using entry = pinChild(folder, name)
    return entry.stats.isDirectory() ? 'folder' : 'file'
  } catch {
    return 'other'
  }
}
