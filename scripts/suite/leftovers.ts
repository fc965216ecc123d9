import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** How long what was stopped last may take until it is gone. */
const PATIENCE_MS = 5_000

/**
 * The directory for temporary files of one run, by which all is found that the run leaves behind: files in it, and
 * processes that name it in their environment, their command line or their working directory.
 */
export class TemporaryDirectory implements Disposable {
  /** Short, since paths of Unix sockets below it may have 107 bytes at most. */
  readonly path = mkdtempSync(join(tmpdir(), 'berth-'))

  constructor() {
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

/** Returns nothing for a process that is gone or that belongs to somebody else. */
function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
