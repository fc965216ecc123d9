import type { Logger } from '../../../../runtime/logger.ts'
import { OncePerPeriod } from '../../../../runtime/once-per-period.ts'
import type { OutboundControl, RefusedDestination } from '../../../sandbox.ts'

/** Refused destinations that are kept of a server. @bound program */
const MOST_REFUSED = 100

/** Milliseconds in which a destination is logged once, and the destinations of a server that are logged in them. */
const LOG_PERIOD_MS = 60_000
/** @bound program */
const MOST_LOGGED = 20

/** The destinations that a server was refused, and who listens for them. */
export class Refusals implements Pick<OutboundControl, 'refused' | 'subscribe'> {
  readonly #serverId: string
  readonly #logger: Logger
  readonly #logged = new OncePerPeriod(LOG_PERIOD_MS, MOST_LOGGED)
  readonly #refused = new Map<string, RefusedDestination>()
  readonly #listeners = new Set<(refused: RefusedDestination) => void>()

  constructor(serverId: string, logger: Logger) {
    this.#serverId = serverId
    this.#logger = logger
  }

  get refused(): readonly RefusedDestination[] {
    return [...this.#refused.values()]
  }

  subscribe(listener: (refused: RefusedDestination) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Forgets those that were refused by other settings. */
  protected forget(): void {
    this.#refused.clear()
  }

  /** Notes a destination as the newest one; those that failed are reported alone. */
  protected note(refused: RefusedDestination): void {
    for (const listener of this.#listeners) listener(refused)
    if (refused.failed) return
    const { destination } = refused
    this.#refused.delete(destination)
    this.#refused.set(destination, refused)
    const [oldest] = this.#refused.keys()
    if (this.#refused.size > MOST_REFUSED && oldest !== undefined) this.#refused.delete(oldest)
    if (this.#logged.admits(destination))
      this.#logger.warn('a server may not reach this', { serverId: this.#serverId, ...refused })
  }
}
