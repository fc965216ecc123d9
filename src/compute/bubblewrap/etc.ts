import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { etcFiles, type SystemPath } from '../local/system-files.ts'

/** Files that change while berth runs, when the machine joins another network. */
const VOLATILE = ['/etc/hosts', '/etc/resolv.conf']

/**
 * An /etc for sandboxes: copies of the files that programs need, and places for the directories among
 * them. One mount shows it; a mount for each file would cost every start 5 ms.
 */
export class EtcDirectory {
  /** Absolute path of the directory. */
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /**
   * Creates or updates the files in place, because running sandboxes see the same directory. Returns the directories
   * of the system's /etc to mount onto the mount points kept for them.
   *
   * @param accounts contents of passwd and group
   */
  prepare(accounts: { passwd: string; group: string }): SystemPath[] {
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
    for (const [name, text] of Object.entries(accounts)) writeFileSync(join(this.path, name), text)
    const directories: SystemPath[] = []
    for (const entry of etcFiles()) {
      if (statSync(entry.real, { throwIfNoEntry: false })?.isDirectory()) directories.push(entry)
      else this.#copy(entry)
    }
    for (const { path } of directories) mkdirSync(this.#place(path), { recursive: true })
    return directories
  }

  /** Copies again the files that may have changed since. */
  refresh(): void {
    for (const entry of etcFiles()) if (VOLATILE.includes(entry.path)) this.#copy(entry)
  }

  #place(path: string): string {
    return join(this.path, path.slice('/etc/'.length))
  }

  #copy({ path, real }: SystemPath): void {
    try {
      const place = this.#place(path)
      const there = statSync(place, { throwIfNoEntry: false })
      const { size, mtimeMs } = statSync(real)
      if (there === undefined) mkdirSync(dirname(place), { recursive: true })
      if (there === undefined || there.size !== size || there.mtimeMs < mtimeMs) copyFileSync(real, place)
    } catch {
      // A file that may not be read is left out, as commands could not read it either.
    }
  }
}
