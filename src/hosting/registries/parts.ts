import type { Logger } from '../../runtime/logger.ts'
import type { Budget } from './budget.ts'
import type { DiskCache } from './disk.ts'
import { DistIndex } from './dist-index.ts'
import { Documents } from './documents.ts'
import type { Upstream } from './upstream.ts'

/** What the protocol of a registry is built on: the registry itself, and what is known of its packages. */
export interface RegistryParts {
  /** The registry's name in the cache: of its protocol and address, so two registries never answer for each other. */
  readonly name: string
  readonly upstream: Upstream
  readonly documents: Documents
  readonly index: DistIndex
}

/** What all registries of a relay share. */
export interface SharedParts {
  disk: DiskCache
  large: Budget
  logger: Logger
  now: () => number
}

/** Returns the parts of one registry. @param protocol its name in paths of the relay */
export function makeParts(protocol: string, upstream: Upstream, shared: SharedParts): RegistryParts {
  const hash = new Bun.CryptoHasher('sha256').update(upstream.address).digest('hex').slice(0, 12)
  const name = `${protocol}-${hash}`
  const index = new DistIndex(shared.disk, name)
  return { name, upstream, index, documents: new Documents({ ...shared, registry: name, upstream, index }) }
}
