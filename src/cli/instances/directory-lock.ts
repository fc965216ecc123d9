import type { Database as Sqlite } from 'bun:sqlite'
import { accessSync, type BigIntStats, constants, existsSync, lstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, isBusy } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { processes } from '../../system/processes.ts'
import { CommandError } from '../errors.ts'

/** Suffix that Linux adds to the path of an open file that was removed. */
const REMOVED = / \(deleted\)$/

/**
 * Reports whether a process holds a data directory: it has the directory's lock file open. The pid is not enough,
 * since another program may have it by now.
 */
export const holdsDirectory = (pid: number, directory: string): boolean =>
  directoriesHeldBy(pid).includes(realPath(directory))

/**
 * Reports whether a berth runs on a data directory. Its files prove nothing: one that was copied from a server, or came
 * with somebody's repository, may name any address, process and key. A berth that runs holds the lock.
 *
 * @param pid the process that the files name
 */
export function isHeld(directory: string, pid: number): boolean {
  const path = join(directory, 'lock')
  const lock = ifPresent(() => lstatSync(path, { bigint: true }))
  // A link could lead to the lock of another directory.
  if (!lock?.isFile()) return false
  return isOpenIn(pid, lock) || isLocked(path, lock)
}

/** Reports whether a process has a file open as its lock. */
function isOpenIn(pid: number, { dev, ino }: BigIntStats): boolean {
  for (const { target, file } of processes.descriptors(pid) ?? []) {
    const open = target.endsWith('/lock') ? file() : null
    if (open?.dev === dev && open.ino === ino) return true
  }
  return false
}

/**
 * Reports whether a berth whose process cannot be looked at has locked a file, such as one in another container. `isInUse`
 * takes what it cannot read for a lock, so that nothing is removed; this takes it for none, so that nothing is believed. A berth
 * writes nothing to the file; SQLite would act on what a file and the journals beside it say, and remove files that they name.
 */
function isLocked(path: string, { size }: BigIntStats): boolean {
  if (size > 0n || ['-journal', '-wal'].some((end) => existsSync(path + end))) return false
  // Loaded here, because few commands need it.
  const { Database } = process.getBuiltinModule('bun:sqlite') as typeof import('bun:sqlite')
  let lock: Sqlite | undefined
  try {
    lock = new Database(path, { readonly: true })
    lock.query('SELECT 1 FROM sqlite_master').get()
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    lock?.close()
  }
}

/** Returns the data directories that a process holds; none if it has ended or belongs to another user. */
export function directoriesHeldBy(pid: number): string[] {
  const found = new Set<string>()
  for (const { target } of processes.descriptors(pid) ?? []) {
    const path = target.replace(REMOVED, '')
    if (path.endsWith('/lock')) found.add(path.slice(0, -'/lock'.length))
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
