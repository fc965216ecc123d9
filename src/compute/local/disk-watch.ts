import type { Logger } from '../../runtime/logger.ts'

/** Milliseconds between two looks, at least. */
const INTERVAL_MS = 2000

/** The part of the time that looking may take: one twentieth. */
const COST_FACTOR = 20

/** The options of a `DiskWatch`. */
export interface DiskWatchOptions {
  /** Bytes that the workspace may use. */
  limit: number
  /** Measures the bytes in use. */
  usage(): Promise<number>
  sandbox: {
    readonly occupied: boolean
    readonly exited: Promise<unknown>
    endProcesses(reason: string): Promise<void>
  }
  logger: Logger
}

/**
 * Ends a server's processes when its files exceed its storage and still grow; processes that only clean up may
 * continue. Looks only while processes run that could write.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions
  #timer: Timer | null = null
  #over = false
  /** Bytes in use at the last look. */
  #last = 0
  /** Whether the storage counts as full regardless of its limit. */
  #full = false

  constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  /** Looks regularly until the sandbox is gone. */
  start(): void {
    void this.#options.sandbox.exited.then(() => {
      this.#over = true
      if (this.#timer !== null) clearTimeout(this.#timer)
    })
    this.#next(INTERVAL_MS)
  }

  /** Makes the storage count as full at its current size, or by its limit again. */
  async fill(full: boolean): Promise<void> {
    if (full) this.#last = await this.#options.usage()
    this.#full = full
  }

  #next(ms: number): void {
    if (this.#over) return
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const { limit, usage, sandbox, logger } = this.#options
    const began = performance.now()
    try {
      if (sandbox.occupied) {
        const used = await usage()
        if (used > Math.max(this.#full ? 0 : limit, this.#last)) {
          const cause = this.#full ? ', and its storage counts as full by a fault' : ''
          await sandbox.endProcesses(`ended: the server's files take ${used} of ${limit} bytes${cause}`)
        }
        this.#last = used
      }
    } catch (error) {
      logger.warn('the disk usage of a server could not be measured', { error })
    }
    this.#next(Math.max(INTERVAL_MS, (performance.now() - began) * COST_FACTOR))
  }
}
