import type { Logger } from '../../runtime/logger.ts'
import { maxOpenFiles } from '../../runtime/open-files.ts'

/** The share of berth's descriptors that connections of clients take at most. Each may take another to an app. */
const SHARE = 3 / 8

/** Bounds the connections of clients of all sites, so that berth keeps descriptors for servers, files and the API. */
export class ClientLimit {
  readonly #max: number
  readonly #logger: Logger
  #open = 0
  /** Whether a connection was refused since there was room last. */
  #hasRefused = false

  /**
   * @param max connections; by default a share of the files that berth may have open
   */
  constructor(logger: Logger, max = Math.floor((maxOpenFiles() ?? Number.POSITIVE_INFINITY) * SHARE)) {
    this.#max = max
    this.#logger = logger
  }

  /** Counts a connection that begins. */
  opened(): void {
    this.#open += 1
  }

  /** Counts a connection that has ended. */
  closed(): void {
    this.#open -= 1
  }

  /** Whether there is no room for one more connection. */
  get isFull(): boolean {
    return this.#open >= this.#max
  }

  /**
   * Returns whether one more connection is accepted. Logs the first refusal.
   */
  admits(): boolean {
    if (!this.isFull) {
      this.#hasRefused = false
      return true
    }
    if (!this.#hasRefused) {
      this.#hasRefused = true
      this.#logger.warn(
        `connections to projects are refused: ${this.#open} are open, all that the limit of open files allows. Close some, or start berth again after "ulimit -n" with a greater number (with systemd: LimitNOFILE).`,
      )
    }
    return false
  }
}
