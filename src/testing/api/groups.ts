import type { AnyElysia } from 'elysia'
import type { ScenarioStore } from '../../agents/scripted/store.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import type { OperationCommands } from '../../contract/reference/routes.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import type { AccountSignIn, AccountsService } from '../../resources/accounts/service.ts'
import type { SecretsService } from '../../resources/secrets/service.ts'
import type { LocalWebhooks } from '../../resources/webhooks/destination.ts'
import type { SteerableClock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Masks } from '../../runtime/masks.ts'
import type { SentSessionsOptions } from '../../signin/session/sent-sessions.ts'
import type { Database } from '../../storage/database.ts'
import type { InboxRoutesOptions } from '../inbox/routes.ts'
import type { InboxStore } from '../inbox/store.ts'
import type { RequestJournal } from '../journal/journal.ts'
import type { ListingServices } from '../seed/services.ts'
import type { WaitRoutesOptions } from '../wait/routes.ts'
import type { ControlChangesOptions } from './changes.ts'
import type { ControlAccess, ControlGuard } from './control-access.ts'
import type { DeliveriesRoutesOptions } from './deliveries.ts'
import type { FaultsRoutesOptions } from './faults.ts'
import type { InstanceStatus } from './health.ts'
import type { ServerFaultsRoutesOptions } from './server-faults.ts'
import type { SignInLinksRoutesOptions } from './sign-in-links.ts'
import type { StateOperations } from './states.ts'

/** The services that the control API works on. */
interface ControlServices
  extends ListingServices,
    FaultsRoutesOptions,
    ServerFaultsRoutesOptions,
    DeliveriesRoutesOptions,
    Omit<SignInLinksRoutesOptions, 'host'>,
    Omit<InboxRoutesOptions, 'inbox' | 'adminToken' | 'stopping'>,
    Omit<WaitRoutesOptions, 'inbox' | 'stopping'>,
    Pick<ControlChangesOptions, 'sockets'> {
  clock: SteerableClock
  database: Pick<Database, 'closed'>
  logger: Logger
  /** For ids of requests for the control API. */
  controlIds: Ids
  /** For ids of requests for inboxes. */
  inboxIds: Ids
  journal: RequestJournal
  localWebhooks: LocalWebhooks
  scenarios: ScenarioStore
  secrets: Pick<SecretsService, 'values'>
  signIn: AccountSignIn & SignInLinksRoutesOptions['signIn'] & Pick<SentSessionsOptions, 'sessions'>
  senderOf: SentSessionsOptions['senderOf']
}

/** Dependencies of the control API. */
export interface ControlAppOptions {
  services: ControlServices
  host: HostOptions
  guard: ControlGuard
  instance: InstanceStatus
  states: StateOperations
  /** The operations of the API. */
  operations: () => Promise<OperationIndex<DescribedOperation>>
  /** For the reference. */
  commands: OperationCommands
  /** Ends open streams. */
  stopping: AbortSignal
}

/** Dependencies of the route groups: those of the control API, and what several groups share. */
interface ControlRouteDependencies extends ControlAppOptions {
  access: ControlAccess
  inbox: InboxStore
  accounts: AccountsService
  /** Returns the masks of all values that are or were secret, updated at each call. */
  masks: () => Masks
  /** Returns all routes in an app that has not responded yet, because Elysia changes the schemas of routes that it compiles. */
  whole: () => Promise<AnyElysia>
}

/** Every group of routes of the control API, in the order in which its document lists them. Each is loaded when it is first asked for. */
export const CONTROL_GROUPS = {
  documents: async ({ services, host, commands, whole }: ControlRouteDependencies) => {
    const [{ documentRoutes }, { pageViewer }] = await Promise.all([
      import('./openapi.ts'),
      import('../../signin/session/browser-requests.ts'),
    ])
    return documentRoutes(whole, {
      commands,
      origin: (request) => originOf(request, host),
      viewer: pageViewer({ ...services, host, sessions: services.signIn.sessions }, '/_berth/docs', true),
    })
  },
  instance: async ({ instance, services }: ControlRouteDependencies) =>
    (await import('./health.ts')).instanceRoutes(instance, services.clock, services.journal),
  states: async ({ access, states, services }: ControlRouteDependencies) =>
    (await import('./states.ts')).statesRoutes(access, states, services.changes),
  clock: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./clock.ts')).clockRoutes(access, services.clock, services.changes),
  accounts: async ({ access, accounts, services }: ControlRouteDependencies) =>
    (await import('./accounts.ts')).accountsRoutes(access, accounts, services.faults),
  signInLinks: async ({ access, services, host }: ControlRouteDependencies) =>
    (await import('./sign-in-links.ts')).signInLinksRoutes(access, { ...services, host }),
  requests: async ({ access, services, operations, masks, stopping }: ControlRouteDependencies) =>
    (await import('./requests.ts')).requestsRoutes(access, { ...services, operations, masks, stopping }),
  events: async ({ access, services, stopping }: ControlRouteDependencies) =>
    (await import('./events.ts')).eventsRoutes(access, { ...services, stopping }),
  localWebhooks: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./local-webhooks.ts')).localWebhooksRoutes(
      access,
      services.localWebhooks,
      services.changes,
    ),
  deliveries: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./deliveries.ts')).deliveriesRoutes(access, services),
  scenarios: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./scenarios.ts')).scenariosRoutes(access, { ...services, ids: services.controlIds }),
  fixtures: async ({ access, services, states }: ControlRouteDependencies) =>
    (await import('./fixtures.ts')).fixturesRoutes(access, services, states),
  tasks: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./tasks.ts')).controlTasksRoutes(access, services.tasks),
  inbox: async ({ access, services, inbox, guard, stopping }: ControlRouteDependencies) =>
    (await import('../inbox/routes.ts')).inboxRoutes(access, {
      ...services,
      inbox,
      adminToken: guard.adminToken,
      stopping,
    }),
  wait: async ({ access, services, inbox, stopping }: ControlRouteDependencies) =>
    (await import('../wait/routes.ts')).waitRoutes(access, { ...services, inbox, stopping }),
  serverNetwork: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./server-network.ts')).serverNetworkRoutes(access, services.servers),
  faults: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./faults.ts')).faultsRoutes(access, services),
  serverFaults: async ({ access, services }: ControlRouteDependencies) =>
    (await import('./server-faults.ts')).serverFaultsRoutes(access, services),
  changes: async ({ access, services, ...shared }: ControlRouteDependencies) =>
    (await import('./changes.ts')).controlChangesRoutes(access, { ...services, ...shared }),
}

/** A group of routes of the control API. */
export type ControlGroup = keyof typeof CONTROL_GROUPS

/** Groups by the segment after `/_berth`, if that is not their name. */
const GROUPS_BY_SEGMENT: Readonly<Record<string, ControlGroup>> = {
  'openapi.json': 'documents',
  docs: 'documents',
  health: 'instance',
  ready: 'instance',
  reset: 'states',
  snapshots: 'states',
  'sign-in-links': 'signInLinks',
  'local-webhooks': 'localWebhooks',
}

const isGroup = (name: string): name is ControlGroup => Object.hasOwn(CONTROL_GROUPS, name)

/**
 * Returns the group of routes for a URL's path. A group has all methods of its paths. Unknown paths belong to a group too,
 * which responds with 404.
 */
export function controlGroupOf(url: string): ControlGroup {
  const [path = ''] = url.slice(url.indexOf('/', url.indexOf('//') + 2)).split('?', 1)
  const [, , segment = '', , part] = path.split('/', 5)
  if (segment === 'servers') return part === 'network' ? 'serverNetwork' : 'serverFaults'
  if (Object.hasOwn(GROUPS_BY_SEGMENT, segment)) return GROUPS_BY_SEGMENT[segment] ?? 'instance'
  return isGroup(segment) ? segment : 'instance'
}
