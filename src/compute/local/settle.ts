import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Pace } from './pace.ts'
import { quote } from './path.ts'

/**
 * Gives a prepared tree the rights that a user's files have: directories 0755, files 0644, or 0755 where their owner could
 * execute them. No bit beyond those stays, set-user-id least of all. Links stay as they are and are not followed.
 *
 * The tree is berth's alone: nothing else changes it meanwhile.
 *
 * @throws Error where something stands in it that no workspace is to hold: a device, a pipe, a socket, or a file with
 * a second name, which may be one of the machine's own
 */
export async function normalizeTree(dir: string): Promise<void> {
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
