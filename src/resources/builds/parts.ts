import type { Agent } from '../../agents/agent.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { HostingEntry } from '../hosting/compose.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'

/** What builds are made of. */
export interface BuildParts {
  queries: Queries
  clock: Clock
  ids: Ids
  logger: Logger
  metering: Metering
  changes: Notifier
  servers: ServersService
  secrets: SecretsService
  templates: TemplateCatalog
  hosting: Pick<HostingEntry, 'preparation' | 'deployments'>
  /** Who implements goals. */
  agent: () => Promise<Agent>
  /** The data folder. */
  dataDir: string
}
