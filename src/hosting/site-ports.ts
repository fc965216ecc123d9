import { KeyedMutex } from '../runtime/mutex.ts'
import type { SiteHost } from './sites/upstream.ts'

/** A port reserved for a project or a deployment that has no record yet. */
export interface ReservedPort {
  readonly port: number
  /** Ends the reservation, because the port is in a record or no longer needed. */
  release(): void
}

/** The ports of sites, unique for each. */
export class SitePorts {
  readonly #sites: SiteHost
  readonly #recorded: () => number[]
  readonly #reserved = new Set<number>()
  readonly #turns = new KeyedMutex()

  /**
   * @param recorded returns the ports in records
   */
  constructor(sites: SiteHost, recorded: () => number[]) {
    this.#sites = sites
    this.#recorded = recorded
  }

  /**
   * Reserves a port that no site uses or has reserved.
   *
   * @throws GatewayError if there is none
   */
  reserve(): Promise<ReservedPort> {
    return this.#turns.run('', async () => {
      const taken = new Set([...this.#reserved, ...this.#recorded()])
      const port = await this.#sites.reserve((port) => taken.has(port))
      this.#reserved.add(port)
      return { port, release: () => void this.#reserved.delete(port) }
    })
  }
}
