import { chmodSync, lstatSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../runtime/error-info.ts'
import { WorkspaceError } from '../workspace.ts'
import { type Jail, type LocatedPath, locate, toWorkspaceError } from './jail.ts'
import { Pace } from './pace.ts'
import { quote } from './path.ts'
import { childPath } from './pinned.ts'
import type { StagingArea } from './staging.ts'

/** Most attempts if the target, or a directory on the way, changes meanwhile. */
const MAX_ATTEMPTS = 8
const ALL_RIGHTS = 0o700

/**
 * Moves a prepared directory to a path of a workspace. The old entry goes to the staging area first, in one rename,
 * and is removed once the new directory is in place; if the new one cannot be moved, the old one is put back. A kill
 * in between leaves nothing at the path, never a part.
 *
 * Throws as `Workspace.place` does.
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
      const raced = ['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')
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
  // A process that still writes into the old directory may keep it from being removed; the next start removes it.
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
    // Something else has been created there; the next attempt moves that away.
  }
}

/**
 * Gives a prepared tree the permissions of a user's files: directories 0755, files 0644, or 0755 if their owner could
 * execute them. Removes all other bits, such as set-user-id. Links are left alone and not followed. Nothing but berth
 * may change the tree meanwhile.
 *
 * @throws Error if the tree holds a device, a pipe, a socket, or a file with a second hard link, which may be one of
 * the machine's own files
 */
async function normalizeTree(dir: string): Promise<void> {
  const pace = new Pace()
  const pending = [dir]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (pace.due) await pace.rest()
    // Before it is read: its owner may have no right to.
    chmodSync(next, 0o755)
    for (const entry of readdirSync(next, { withFileTypes: true })) {
      const path = join(next, entry.name)
      const stats = lstatSync(path)
      if (stats.isDirectory()) pending.push(path)
      else if (stats.isFile() && stats.nlink === 1) chmodSync(path, stats.mode & 0o100 ? 0o755 : 0o644)
      else if (!stats.isSymbolicLink()) {
        const what = stats.isFile() ? 'a file with a second name' : 'no file, folder or link'
        throw new Error(`${quote(path.slice(dir.length + 1))} cannot be placed: it is ${what}.`)
      }
    }
  }
}
