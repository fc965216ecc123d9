import type { Metering } from '../../resources/accounts/metering.ts'
import type { Plans } from '../../resources/accounts/plans.ts'
import type { AccountsDependencies } from '../../resources/accounts/service.ts'
import type { FilesService } from '../../resources/files/service.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { ProjectsService } from '../../resources/projects/service.ts'
import type { SecretsService } from '../../resources/secrets/service.ts'
import type { ServersService } from '../../resources/servers/service.ts'
import type { TemplateCatalog } from '../../resources/templates/catalog.ts'
import type { WebhooksService } from '../../resources/webhooks/service.ts'
import type { SteerableClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { FaultStore } from '../faults/store.ts'

/** The services that list fixtures. */
export interface ListingServices extends AccountsDependencies {
  keys: KeysService
  servers: ServersService
  projects: () => Promise<ProjectsService>
  webhooks: () => Promise<WebhooksService>
}

/** The services that apply fixtures, the same that API callers use. */
export interface SeedServices extends ListingServices {
  clock: SteerableClock
  logger: Logger
  plans: Plans
  metering: Metering
  files: FilesService
  secrets: SecretsService
  templates: TemplateCatalog
  faults: FaultStore
}
