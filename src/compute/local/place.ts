import { chmodSync, lstatSync, renameSync } from 'node:fs'
import { WorkspaceError } from '../workspace.ts'
import { type Jail, type LocatedPath, locate, toWorkspaceError } from './jail.ts'
import { quote } from './path.ts'
import { childPath, systemCode } from './pinned.ts'
import { normalizeTree } from './settle.ts'
import type { StagingArea } from './staging.ts'

/** How often it begins again when the place is taken, or a directory on the way removed, under it. */
const MAX_ATTEMPTS = 8
const ALL_RIGHTS = 0o700

/**
 * Moves a prepared directory to a path of a workspace. What stood there goes to the staging area first, in one rename,
 * and is removed when the new directory stands; where the new one cannot be put there, the old one comes back. A kill
 * in between leaves nothing at the path, never a part.
 *
 * See `Workspace.place` for what it throws.
 */
export async function placeDirectory(
  jail: Jail,
  area: StagingArea,
  dir: string,
  path: string,
): Promise<void> {
  if (!area.holds(dir) || !lstatSync(dir).isDirectory()) {
    throw new Error(`${quote(dir)} was not prepared in the workspace's staging area.`)
  }
  await normalizeTree(dir)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await swap(jail, area, dir, path)
    } catch (error) {
      const raced = ['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '')
      if (!raced || attempt === MAX_ATTEMPTS) throw toWorkspaceError(error, path)
    }
  }
}

async function swap(jail: Jail, area: StagingArea, dir: string, path: string): Promise<void> {
  const old = area.freshPath()
  {
    using place = locate(jail, path, { follow: false, makeParents: true })
    if (place.name === '') {
      throw new WorkspaceError('root', `${quote(path)} is the workspace itself. Name a folder in it.`)
    }
    const target = childPath(place.parent, place.name)
    const moved = place.entry !== null
    if (place.entry !== null) {
      openClosed(place.entry)
      renameSync(target, old.path)
    }
    try {
      renameSync(dir, target)
    } catch (error) {
      if (moved) putBack(old.path, target)
      throw error
    }
  }
  // A process that goes on writing into the old directory keeps it from going: the next start removes it then.
  await old.remove().catch(() => {})
}

/** The parent of a directory that is moved is written into it: its owner needs the right to. */
function openClosed({ path, stats }: NonNullable<LocatedPath['entry']>): void {
  const mode = stats.mode & 0o7777
  if (!stats.isDirectory() || (mode & ALL_RIGHTS) === ALL_RIGHTS || process.geteuid?.() === 0) return
  chmodSync(path, mode | ALL_RIGHTS)
}

function putBack(from: string, to: string | Buffer): void {
  try {
    renameSync(from, to)
  } catch {
    // Something else stands there by now: the next attempt moves that away.
  }
}
