import { existsSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'

/** Replaces a file that only its owner may read (mode 0600), whole or not at all. */
export function writePrivate(path: string, content: string | Uint8Array): void {
  const fresh = `${path}.new`
  // One that a killed berth has left may have other rights.
  remove(fresh)
  writeFileSync(fresh, content, { mode: 0o600 })
  renameSync(fresh, path)
}

/** Removes a file. Looks first: an exception costs a start more than the file operations around it. */
export function remove(path: string): void {
  if (existsSync(path)) unlinkSync(path)
}
