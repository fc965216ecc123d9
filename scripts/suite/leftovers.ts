import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What the temporary files of a run may take in memory. */
const MEMORY_BYTES = 4 * 2 ** 30

/** How long what was stopped last may take until it is gone. */
const PATIENCE_MS = 5_000

/**
 * The directory for temporary files of one run, by which all is found that the run leaves behind: files in it, and
 * processes that name it in their environment, their command line or their working directory.
 *
 * It is in memory if that may be mounted and twice as much is free as it may take. Where thousands of files are made and
 * removed, ext4 searches long for an inode that was not removed lately: six test files took 51 s of a processor on it, and
 * 36 s in memory.
 */
export class TemporaryDirectory implements Disposable {
  /** Short, since paths of Unix sockets below it may have 107 bytes at most. */
  readonly path = mkdtempSync(join(tmpdir(), 'berth-'))

  readonly #isMounted: boolean

  /** @param mayBeInMemory false to keep it on the disk */
  constructor(mayBeInMemory: boolean) {
    const options = `size=${MEMORY_BYTES},mode=1777`
    this.#isMounted =
      mayBeInMemory &&
      availableBytes() > 2 * MEMORY_BYTES &&
      succeeds(['mount', '-t', 'tmpfs', '-o', options, 'berth-tests', this.path])
    // As open as /tmp is: some tests run programs as another user.
    chmodSync(this.path, 0o1777)
  }

  /** Returns a line for each file at the top of the directory and for each process; waits for what is about to go. */
  async leftovers(): Promise<string[]> {
    const deadline = performance.now() + PATIENCE_MS
    for (;;) {
      const files = readdirSync(this.path).map((name) => `a file: ${name}`)
      const processes = this.#processes().map(({ pid, command }) => `a process: ${pid} ${command}`)
      const found = [...files, ...processes]
      if (found.length === 0 || performance.now() > deadline) return found
      await Bun.sleep(50)
    }
  }

  /** Removes the directory, and ends the processes that are left. */
  [Symbol.dispose](): void {
    for (const { pid } of this.#processes()) attempt(() => String(process.kill(pid, 'SIGKILL')))
    // Lazily: what has just ended may hold it still.
    if (this.#isMounted) succeeds(['umount', '--lazy', this.path])
    rmSync(this.path, { recursive: true, force: true })
  }

  #processes(): { pid: number; command: string }[] {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid)
      .flatMap((pid) => {
        const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
        const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))
        const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
        if (![command, environment, cwd].some((text) => text.includes(this.path))) return []
        return [{ pid, command: command.replaceAll('\0', ' ').trim() }]
      })
  }
}

/** Returns how much memory programs may take without others being paged out: proc_meminfo(5). Zero on other systems than Linux. */
function availableBytes(): number {
  const [, kilobytes] =
    /^MemAvailable: +(\d+) kB$/m.exec(attempt(() => readFileSync('/proc/meminfo', 'utf8'))) ?? []
  return Number(kilobytes ?? 0) * 1024
}

/** Runs a program that may be missing or refuse, and reports whether it did what it is for. */
function succeeds(command: string[]): boolean {
  try {
    return Bun.spawnSync(command, { stdio: ['ignore', 'ignore', 'ignore'] }).success
  } catch {
    return false
  }
}

/** Returns nothing for a process that is gone or that belongs to somebody else. */
function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
