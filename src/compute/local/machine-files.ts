import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/read-text.ts'

// Looks at files of the machine that may be missing, be replaced meanwhile, or belong to somebody else: none of these
// throws.

/** Returns the entries of a directory, by name; none if it cannot be read. */
export function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/** Returns the names in a directory, in no order; none if it cannot be read. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
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
export const textOf = (path: string): string => readTextOrNull(path) ?? ''
