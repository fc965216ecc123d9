import type { SiteHost } from '../../hosting/sites/upstream.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { Queries } from '../../storage/database.ts'
import { deployments } from '../deployments/table.ts'
import { projects } from '../projects/table.ts'

/** A port that is promised to a project or a deployment which has no record yet. */
export interface PromisedPort {
  readonly port: number
  /** It stands in a record now, or is not needed any more. */
  release(): void
}

/** The ports of sites: no two projects or deployments have the same. */
export class SitePorts {
  readonly #sites: SiteHost
  readonly #queries: Queries
  readonly #promised = new Set<number>()
  readonly #turns = new KeyedMutex()

  constructor(sites: SiteHost, queries: Queries) {
    this.#sites = sites
    this.#queries = queries
  }

  /** A port that neither a project nor a deployment has or is promised. @throws GatewayError where there is none */
  reserve(): Promise<PromisedPort> {
    return this.#turns.run('', async () => {
      const taken = new Set([...this.#promised, ...this.#recorded()])
      const port = await this.#sites.reserve((port) => taken.has(port))
      this.#promised.add(port)
      return { port, release: () => void this.#promised.delete(port) }
    })
  }

  #recorded(): number[] {
    const rows = [projects, deployments].flatMap((table) =>
      this.#queries.select({ port: table.port }).from(table).all(),
    )
    return rows.map(({ port }) => port)
  }
}
