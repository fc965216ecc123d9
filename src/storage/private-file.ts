import { closeSync, lstatSync, openSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { ifPresent } from '../runtime/if-present.ts'

/** Replaces a file that only its owner may read (mode 0600), whole or not at all. */
export function writePrivate(path: string, content: string | Uint8Array): void {
  const fresh = `${path}.new`
  // A killed berth's file may have another mode, and a planted link may lead anywhere.
  remove(fresh)
  writeFileSync(fresh, content, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}

/**
 * Creates a file that only its owner may read, if there is none. SQLite gives its files beside it the same rights.
 */
export function makePrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
}

/** Removes a file or a link. Looks first: an exception costs a start more than the file operations around it. */
export function remove(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) ifPresent(() => unlinkSync(path))
}
