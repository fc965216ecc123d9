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
      const found = [...readdirSync(this.path).map((name) => `a file: ${name}`), ...this.#processes()]
      if (found.length === 0 || performance.now() > deadline) return found
      await Bun.sleep(50)
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }

  #processes(): string[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .flatMap((pid) => {
        const commandLine = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
        const places = [
          commandLine,
          attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8')),
          attempt(() => readlinkSync(`/proc/${pid}/cwd`)),
        ]
        if (!places.some((text) => text.includes(this.path))) return []
        return [`a process: ${pid} ${commandLine.replaceAll('\0', ' ').trim()}`]
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
