import type { Logger } from '../../runtime/logger.ts'
import type { StorageWatch } from '../sandboxd/sandbox-base.ts'

/** Milliseconds between two looks, at least and at most. */
const SHORTEST_MS = 2_000
const LONGEST_MS = 10_000

/** Bytes that a fast disk takes in a millisecond. The more room a server has, the longer nothing can exceed it. */
const DISK_SPEED = 1e6

/** The part of the time that looking may take: one twentieth. */
const COST_FACTOR = 20

/** The options of a `DiskWatch`. */
interface DiskWatchOptions {
  /** Bytes that the workspace may use. */
  limit: number
  /** Measures the bytes in use. */
  usage(): Promise<number>
  /** Removes what can be made again. */
  reclaim(): Promise<void>
  sandbox: {
    /** Reports whether anything runs in it that could write. */
    isOccupied(): boolean | Promise<boolean>
    readonly ending: boolean
    readonly exited: Promise<unknown>
    endProcesses(reason: string): Promise<void>
  }
  logger: Logger
}

/**
 * When a server's files exceed its storage, removes its caches, and ends its processes if the files still grow; processes that only clean up may
 * continue. Looks only while processes run that could write: a server without any costs nothing.
 */
export class DiskWatch implements StorageWatch {
  readonly #options: DiskWatchOptions
  #timer: Timer | null = null
  #active = false
  /** Whether a command has started since the last look began. */
  #woken = false
  #over = false
  /** Bytes in use at the last look. */
  #last = 0
  /** Whether the storage counts as full regardless of its limit. */
  #full = false

  constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  /** Stops for good when the sandbox is gone. */
  start(): void {
    void this.#options.sandbox.exited.then(() => {
      this.#over = true
      this.#cancel()
    })
  }

  /** Looks regularly from now on, until no process is left. Call it when a command starts. */
  wake(): void {
    this.#woken = true
    if (this.#active) return
    this.#active = true
    this.#next(SHORTEST_MS)
  }

  /** Makes the storage count as full at its current size, or by its limit again. */
  async fill(full: boolean): Promise<void> {
    if (full) this.#last = await this.#options.usage()
    this.#full = full
    // The next look may be due later, because there was much room.
    if (full && this.#timer !== null) this.#next(SHORTEST_MS)
  }

  #next(ms: number): void {
    this.#cancel()
    if (this.#over) return
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  #cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  async #look(): Promise<void> {
    this.#timer = null
    const { limit, usage, reclaim, sandbox, logger } = this.#options
    const began = performance.now()
    this.#woken = false
    try {
      if (!(await sandbox.isOccupied()) && !this.#woken) {
        this.#active = false
        return
      }
      let used = await usage()
      if (used > limit) {
        await reclaim()
        used = await usage()
      }
      if (used > Math.max(this.#full ? 0 : limit, this.#last)) {
        const cause = this.#full ? ', and its storage counts as full by a fault' : ''
        await sandbox.endProcesses(`ended: the server's files take ${used} of ${limit} bytes${cause}`)
      }
      this.#last = used
    } catch (error) {
      if (sandbox.ending) return
      logger.warn('the disk usage of a server could not be measured', { error })
    }
    const room = this.#full ? 0 : (limit - this.#last) / DISK_SPEED
    const pause = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, room))
    this.#next(Math.max(pause, (performance.now() - began) * COST_FACTOR))
  }
}
