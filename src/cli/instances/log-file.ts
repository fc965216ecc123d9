import { openSync, renameSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'

/** Name of the log in a data directory. */
const LOG_NAME = 'berth.log'

/** Size in bytes above which a log is renamed when it is opened, replacing the previous one. */
const LARGE_BYTES = 10 * 2 ** 20

/** Number of last lines with errors to keep. */
const KEPT_ERRORS = 5

/** Matches such a line: time, then level. */
const ERROR = /^\S+ ERROR /

/** The log of an instance in its data directory. Keeps lines in memory until the directory is known. */
export class InstanceLogFile {
  #buffer: string[] = []
  #fd: number | null = null
  readonly #errors: string[] = []

  /** Appends a line, newline included. Drops a line that cannot be written. */
  readonly write = (line: string): void => {
    if (ERROR.test(line)) this.#errors.push(line)
    if (this.#errors.length > KEPT_ERRORS) this.#errors.shift()
    if (this.#fd === null) this.#buffer.push(line)
    else writeLine(this.#fd, line)
  }

  /** Lines logged before the file was open. */
  get buffered(): string {
    return this.#buffer.join('')
  }

  /** The last lines with errors. */
  get errors(): readonly string[] {
    return this.#errors
  }

  /**
   * Continues in the log of the data directory, which only its owner can read.
   *
   * @returns the file's descriptor and path
   */
  open(dataDir: string): { fd: number; path: string } {
    const path = join(dataDir, LOG_NAME)
    const size = ifPresent(() => statSync(path).size) ?? 0
    if (size > LARGE_BYTES) ifPresent(() => renameSync(path, `${path}.old`))
    const fd = openSync(path, 'a', 0o600)
    this.#fd = fd
    for (const line of this.#buffer) writeLine(fd, line)
    this.#buffer = []
    return { fd, path }
  }
}

function writeLine(fd: number, line: string): void {
  try {
    writeSync(fd, line)
  } catch {
    // The disk is full: the instance goes on without its log.
  }
}
