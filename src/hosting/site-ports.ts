import { KeyedMutex } from '../runtime/mutex.ts'
import type { SiteHost } from './sites/upstream.ts'

/** A port that is promised to a project or a deployment which has no record yet. */
export interface PromisedPort {
  readonly port: number
  /** Gives the promise up: the port stands in a record now, or is not needed any more. */
  release(): void
}

/** The ports of sites: no two sites have the same. */
export class SitePorts {
  readonly #sites: SiteHost
  readonly #recorded: () => number[]
  readonly #promised = new Set<number>()
  readonly #turns = new KeyedMutex()

  /** @param recorded returns the ports that stand in records */
  constructor(sites: SiteHost, recorded: () => number[]) {
    this.#sites = sites
    this.#recorded = recorded
  }

  /** Reserves a port that no site has or is promised. @throws GatewayError where there is none */
  reserve(): Promise<PromisedPort> {
    return this.#turns.run('', async () => {
      const taken = new Set([...this.#promised, ...this.#recorded()])
      const port = await this.#sites.reserve((port) => taken.has(port))
      this.#promised.add(port)
      return { port, release: () => void this.#promised.delete(port) }
    })
  }
}
