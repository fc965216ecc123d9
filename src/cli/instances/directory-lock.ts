import { accessSync, constants, readlinkSync, realpathSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { namesIn } from '../../runtime/names-in.ts'
import { CommandError } from '../errors.ts'

/** Suffix that Linux adds to the path of an open file that was removed. */
const REMOVED = / \(deleted\)$/

/**
 * Reports whether a process holds a data directory: it has the directory's lock file open. The pid is not enough,
 * since another program may have it by now.
 */
export const holdsDirectory = (pid: number, directory: string): boolean =>
  directoriesHeldBy(pid).includes(realPath(directory))

/** Returns the data directories that a process holds; none if it has ended or belongs to another user. */
export function directoriesHeldBy(pid: number): string[] {
  const found = new Set<string>()
  for (const fd of namesIn(`/proc/${pid}/fd`)) {
    const path = readLink(`/proc/${pid}/fd/${fd}`)?.replace(REMOVED, '')
    if (path?.endsWith('/lock')) found.add(path.slice(0, -'/lock'.length))
  }
  return [...found]
}

/**
 * Refuses a data directory that this user cannot read.
 *
 * @throws CommandError
 */
export function checkAccessible(directory: string): void {
  try {
    accessSync(directory, constants.X_OK)
  } catch (error) {
    if (codeOf(error) !== 'EACCES') return
    throw new CommandError(`${directory} may not be read by this user. Run as the user that runs berth.`)
  }
}

/** Resolves a path. Returns it unchanged if it does not exist or cannot be read. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
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
