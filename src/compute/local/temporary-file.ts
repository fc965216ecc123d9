import { closeSync, constants, fchmodSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { writeAll } from '../../runtime/descriptor-io.ts'
import { NO_LINKS } from '../../system/files.ts'

/**
 * Names for files that are written before they replace another. They have a fixed length, so a file with the longest
 * possible name can be replaced too. They are recognizable, so a file that a killed berth left is neither listed nor
 * kept. The first part identifies the process: a file of any other process is stale, because a data directory has one
 * berth at a time.
 */
const PATTERN = /^\.berth-([0-9a-z]+)-[0-9a-f]{16}\.tmp$/

/** Names of the same kind, of what belongs to the state until it is removed. */
const STATE_PATTERN = /^\.berth-([0-9a-z]+)-[0-9a-f]{16}\.kept$/

/** Returns a fresh name that nothing in the sandbox can guess and occupy. */
export function temporaryName(): string {
  return `${freshStem()}.tmp`
}

/** Returns a fresh name for what belongs to the state until it is removed. */
export function stateName(): string {
  return `${freshStem()}.kept`
}

const freshStem = (): string =>
  `.berth-${processMark()}-${Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString('hex')}`

/** Reports whether a name is of this kind: such files are not the user's. */
export function isTemporary(name: string): boolean {
  return PATTERN.test(name)
}

/** Reports whether a name is one of `stateName`. */
export function isStateName(name: string): boolean {
  return STATE_PATTERN.test(name)
}

/** Reports whether a name is one of `temporaryName` and its process has ended. */
export function isStale(name: string): boolean {
  return isOfEndedProcess(PATTERN, name)
}

/** Reports whether a name is one of `stateName` and its process has ended. */
export function isStaleState(name: string): boolean {
  return isOfEndedProcess(STATE_PATTERN, name)
}

function isOfEndedProcess(pattern: RegExp, name: string): boolean {
  const mark = pattern.exec(name)?.[1]
  return mark !== undefined && mark !== processMark()
}

/** Returns the time at which this process started. Unlike a pid, no later process in a container can share it. */
function processMark(): string {
  return Math.floor(performance.timeOrigin).toString(36)
}

/** A new file that replaces another once it is complete. Disposing of it removes it, unless it was moved. */
export class TemporaryFile implements Disposable {
  readonly #path: string | Buffer
  readonly #descriptor: number
  #size = 0
  #moved = false

  /**
   * Creates it, at a path with a temporary name. Throws the system's error.
   *
   * @param links the flag that refuses links; those above a directory of berth's own are allowed
   */
  constructor(path: string | Buffer, links = NO_LINKS) {
    const { O_WRONLY, O_CREAT, O_EXCL } = constants
    this.#path = path
    this.#descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | links, 0o644)
  }

  /** Sets its permission bits. */
  setMode(mode: number): void {
    fchmodSync(this.#descriptor, mode)
  }

  /** Adds bytes. Throws the system's error. */
  async append(bytes: Uint8Array): Promise<void> {
    await writeAll(this.#descriptor, bytes, this.#size)
    this.#size += bytes.length
  }

  /** Moves it to another path of its file system, in place of any file there. Throws the system's error. */
  moveTo(path: string | Buffer): void {
    renameSync(this.#path, path)
    this.#moved = true
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
    if (this.#moved) return
    try {
      unlinkSync(this.#path)
    } catch {
      // Already gone, with its directory.
    }
  }
}
