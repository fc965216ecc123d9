import { accessSync, constants, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { CommandError } from '../errors.ts'

/** What Linux appends to the name of a file that was removed while it is open. */
const REMOVED = / \(deleted\)$/

/**
 * Whether a process holds a data directory: it has the directory's lock open. A pid alone says nothing, since it may have
 * come to another program meanwhile.
 */
export const holdsDirectory = (pid: number, directory: string): boolean =>
  directoriesHeldBy(pid).includes(realPath(directory))

/** The data directories that a process holds; none where it has ended or belongs to another user. */
export function directoriesHeldBy(pid: number): string[] {
  const found = new Set<string>()
  for (const fd of list(`/proc/${pid}/fd`)) {
    const path = readLink(`/proc/${pid}/fd/${fd}`)?.replace(REMOVED, '')
    if (path?.endsWith('/lock')) found.add(path.slice(0, -'/lock'.length))
  }
  return [...found]
}

/** @throws CommandError for a data directory that is another user's, of which nothing can be said */
export function checkAccessible(directory: string): void {
  try {
    accessSync(directory, constants.X_OK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') return
    throw new CommandError(`${directory} may not be read by this user. Run as the user that runs berth.`)
  }
}

/** Resolves a path; one that is gone, or out of this user's reach, stays as it is. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function readLink(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    // Closed meanwhile.
    return null
  }
}
