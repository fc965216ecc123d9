import type { PortRange } from '../../config/config.ts'
import type { HostRoutes } from '../../http/listener.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Random } from '../../runtime/random.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Queries } from '../../storage/database.ts'
import type { Plans } from '../accounts/plans.ts'
import type { Outbox } from '../events/outbox.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'

/** What hosting finds around it. */
export interface HostingSurroundings {
  /** The address that berth listens on; sites listen there too. */
  host: string
  /** A further name that the Host header may carry. */
  publicHost: string | null
  /** The ports of sites. */
  ports: PortRange
  /** Folders of this machine that repositories may be taken from. */
  sourceFolders: readonly string[]
  /** Whether code may come from this machine's and private networks' addresses. */
  allowLocalSources: boolean
  /** The npm registry that packages come from. */
  npmRegistry: string
  /** The data folder. */
  dataDir: string
  /** Has the main port ask these first from now on. */
  route: (routes: HostRoutes) => void
  /** The variables that berth was started with. */
  environment: Readonly<Record<string, string | undefined>>
}

/** What projects and deployments are made of. */
export interface AssemblyParts extends HostingSurroundings {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  cipher: Cipher
  outbox: Outbox
  changes: Notifier
  plans: Plans
  /** The randomness of each purpose. */
  randomFor: (purpose: string) => Random
  /** Whether what apps are given is to be the same in every run. */
  repeatable: boolean
  servers: ServersService
  secrets: SecretsService
  templates: TemplateCatalog
}
