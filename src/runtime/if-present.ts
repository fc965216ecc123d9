import { type Dirent, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'

/**
 * Codes of errno(3) that mean a path leads nowhere anymore: the entry or a directory above it was removed, the
 * process of a /proc path has ended (ESRCH), or the control group of a cgroupfs path is gone (ENODEV).
 */
const GONE: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'ENODEV'])

/**
 * Runs a synchronous file operation on something that another process may remove at any moment, and returns its
 * result, or null if the path leads nowhere. A check beforehand cannot replace it: what was there may be gone by the
 * time of the operation.
 *
 * @throws every other error of the operation
 */
export function ifPresent<T>(operation: () => T): T | null {
  try {
    return operation()
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** Reports whether an error of the system says that a path leads nowhere any more. */
export const isGone = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && GONE.has(error.code)

/**
 * Reads a small file, such as one of /proc, in Latin-1, so any bytes have a text. Returns null if it cannot be read: its
 * process may have ended, or belong to another user.
 */
export function readTextOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null
  }
}

/**
 * Lists the names in a directory. Returns none if it cannot be listed: another process may remove it at any moment, or it
 * belongs to another user.
 */
export function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

/** Returns the entries of a directory, by name; none if it cannot be read. */
export function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/** Reports whether a path leads to a directory. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Returns the path without links; null if it leads nowhere, or to where this process may not look. */
export function realPathOrNull(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** Returns the text of a small file; empty if it cannot be read. */
export const textOrEmpty = (path: string): string => readTextOrNull(path) ?? ''
