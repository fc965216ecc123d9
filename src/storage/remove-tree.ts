import { chmodSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../runtime/if-present.ts'

const ALL_RIGHTS = 0o700

/**
 * Removes a file or a tree, with any permissions: inaccessible directories, as in Go's module cache, are made
 * accessible first. Links are removed, never followed. A missing path is no error.
 *
 * @throws the system's error
 */
export function removeTree(path: string): void {
  try {
    remove(path)
  } catch {
    // A directory without rights is opened. Anything else fails again.
    openDirectories(path)
    remove(path)
  }
}

/** Removes a tree as `removeTree` does, in a separate process. */
export async function removeTreeAside(path: string): Promise<void> {
  if (!(await removedBySystem(path))) removeTree(path)
}

/** Workspaces may hold trees of any depth: the system's own rm takes them in one pass. */
async function removedBySystem(path: string): Promise<boolean> {
  try {
    return (
      (await Bun.spawn(['rm', '-rf', '--', path], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0
    )
  } catch {
    // No process can be started: the program is missing, or there are too many processes.
    return false
  }
}

/** Processes that are just ending may still write. */
const remove = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 })

function openDirectories(path: string): void {
  for (let directories = [path]; directories.length > 0; directories = directories.flatMap(directoriesIn)) {
    for (const dir of directories) openDirectory(dir)
  }
}

function openDirectory(path: string): void {
  const stats = ifPresent(() => lstatSync(path))
  if (stats?.isDirectory() && (stats.mode & ALL_RIGHTS) !== ALL_RIGHTS)
    ifPresent(() => chmodSync(path, stats.mode | ALL_RIGHTS))
}

function directoriesIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name))
  } catch {
    // Already gone, or a file, whose removal reports errors.
    return []
  }
}
