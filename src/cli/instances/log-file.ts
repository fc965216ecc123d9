import { openSync, renameSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'

/** Name of the log in a data directory. */
export const LOG_NAME = 'berth.log'

/** A log that is larger when it is opened is put aside, in place of the one that was before. */
const LARGE_BYTES = 10 * 2 ** 20

/** The number of the last lines with errors that are kept. */
const KEPT_ERRORS = 5

/** Such a line: the time, then the level. */
const ERROR = /^\S+ ERROR /

/** The log of an instance in its own data directory. Lines that come before the directory is known are kept until then. */
export class InstanceLogFile {
  #buffer: string[] = []
  #fd: number | null = null
  readonly #errors: string[] = []

  /** Takes a line, newline included; one that cannot be written is given up. */
  readonly write = (line: string): void => {
    if (ERROR.test(line)) this.#errors.push(line)
    if (this.#errors.length > KEPT_ERRORS) this.#errors.shift()
    if (this.#fd === null) this.#buffer.push(line)
    else writeLine(this.#fd, line)
  }

  /** What was logged while there was no file. */
  get buffered(): string {
    return this.#buffer.join('')
  }

  /** The last lines with errors. */
  get errors(): readonly string[] {
    return this.#errors
  }

  /** Goes on in the directory's log, which its owner alone may read. @returns the descriptor and the path of the file */
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
  } catch {}
}
