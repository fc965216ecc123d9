import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Lets every user read a directory with all in it, whatever the umask was: commands of a server may have another user
 * than berth. The directories above decide who reaches it.
 */
export function makeReadable(directory: string): void {
  addRights(directory, 0o555)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) makeReadable(path)
    else if (entry.isFile()) addRights(path, (statSync(path).mode & 0o100) === 0 ? 0o444 : 0o555)
  }
}

function addRights(path: string, rights: number): void {
  const { mode } = statSync(path)
  if ((mode & rights) !== rights) chmodSync(path, (mode & 0o7777) | rights)
}
