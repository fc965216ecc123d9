import { type AnyElysia, Elysia } from 'elysia'
import type { ScenarioStore } from '../../agents/scripted/store.ts'
import { errorAnswers, methodsByRoutes } from '../../contract/error-response.ts'
import type { DescribedOperation } from '../../contract/operation.ts'
import type { OperationIndex } from '../../contract/operations.ts'
import type { OperationCommands } from '../../contract/reference/routes.ts'
import { BODY_LIMIT } from '../../http/body.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import { requestEntry } from '../../http/request-entry.ts'
import type { AccountSignIn } from '../../resources/accounts/service.ts'
import { AccountsService } from '../../resources/accounts/service.ts'
import type { SecretsService } from '../../resources/secrets/service.ts'
import type { LocalWebhooks } from '../../resources/webhooks/destination.ts'
import type { SteerableClock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { Masks } from '../../runtime/masks.ts'
import { referenceViewer } from '../../signin/pages/viewer.ts'
import type { SentSessionsOptions } from '../../signin/session/sent-sessions.ts'
import type { Database } from '../../storage/database.ts'
import { type InboxRoutesOptions, inboxRoutes } from '../inbox/routes.ts'
import { InboxStore } from '../inbox/store.ts'
import type { RequestJournal } from '../journal/journal.ts'
import type { ListingServices } from '../seed/services.ts'
import { type WaitRoutesOptions, waitRoutes } from '../wait/routes.ts'
import { accountsRoutes } from './accounts.ts'
import { type ControlChangesOptions, controlChangesRoutes } from './changes.ts'
import { clockRoutes } from './clock.ts'
import { type ControlGuard, controlAccess, controlEntry } from './control-access.ts'
import { type DeliveriesRoutesOptions, deliveriesRoutes } from './deliveries.ts'
import { eventsRoutes } from './events.ts'
import { type FaultsRoutesOptions, faultsRoutes } from './faults.ts'
import { fixturesRoutes } from './fixtures.ts'
import { type InstanceStatus, instanceRoutes } from './health.ts'
import { localWebhooksRoutes } from './local-webhooks.ts'
import { documentRoutes } from './openapi.ts'
import { requestsRoutes } from './requests.ts'
import { scenariosRoutes } from './scenarios.ts'
import { type ServerFaultsRoutesOptions, serverFaultsRoutes } from './server-faults.ts'
import { serverNetworkRoutes } from './server-network.ts'
import { type SignInLinksRoutesOptions, signInLinksRoutes } from './sign-in-links.ts'
import { type StateOperations, statesRoutes } from './states.ts'
import { controlTasksRoutes } from './tasks.ts'

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
  isSentFromServer: SentSessionsOptions['isSentFromServer']
}

/** Dependencies of the control API. */
interface ControlAppOptions {
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

const isPostToInbox = ({ method, url }: Request): boolean =>
  method === 'POST' && /^[a-z]+:\/\/[^/]*\/_berth\/inbox\//.test(url)

/**
 * Creates the app of `/_berth`, which operates and tests the instance. It is separate from the API and created at its
 * first request, because few instances use it.
 */
export function createControlApp(options: ControlAppOptions): AnyElysia {
  const { services, host, guard, instance, states, operations, commands, stopping } = options
  const { database, queries, clock, controlIds, inboxIds, logger, outbox } = services
  const { deliveries, scenarios, tasks, journal, secrets, changes } = services
  const access = controlAccess(guard, BODY_LIMIT)
  const inbox = new InboxStore(services)
  const accounts = new AccountsService(services)
  const masks = masking(() => secrets.values())
  const sources = { ...services, inbox, accounts, states, operations, masks, stopping }
  const root = new Elysia({ name: 'berth/control', normalize: false })
  const methodsOf = methodsByRoutes(() => root.routes)
  const directory = () => {
    const paths = new Set(root.routes.map(({ path }) => path.replace(/:(\w+)/g, '{$1}')))
    return `The control API has ${[...paths].join(', ')}.`
  }
  return root
    .use(errorAnswers(logger, methodsOf, directory, { database }))
    .use(requestEntry((request) => (isPostToInbox(request) ? inboxIds : controlIds), host))
    .use(controlEntry(guard))
    .use(access)
    .use(
      documentRoutes(() => createControlApp(options), {
        commands,
        origin: (request) => originOf(request, host),
        viewer: referenceViewer(
          { ...services, host, sessions: services.signIn.sessions },
          '/_berth/docs',
          true,
        ),
      }),
    )
    .use(instanceRoutes(instance, clock))
    .use(statesRoutes(access, states, changes))
    .use(clockRoutes(access, clock, changes))
    .use(accountsRoutes(access, accounts, services.faults))
    .use(signInLinksRoutes(access, { ...services, host }))
    .use(requestsRoutes(access, { journal, changes, operations, masks, stopping }))
    .use(eventsRoutes(access, { queries, outbox, stopping }))
    .use(localWebhooksRoutes(access, services.localWebhooks, changes))
    .use(deliveriesRoutes(access, { queries, deliveries }))
    .use(scenariosRoutes(access, scenarios, changes))
    .use(fixturesRoutes(access, services, states))
    .use(controlTasksRoutes(access, tasks))
    .use(inboxRoutes(access, { ...services, inbox, adminToken: guard.adminToken, stopping }))
    .use(
      waitRoutes(access, {
        ...services,
        inbox,
        tasks,
        projects: services.projects,
        stopping,
      }),
    )
    .use(serverNetworkRoutes(access, services.servers))
    .use(faultsRoutes(access, services))
    .use(serverFaultsRoutes(access, services))
    .use(controlChangesRoutes(access, sources))
}

/** Returns the masks of all values that are or were secret, updated at each call. */
function masking(values: () => Iterable<string>): () => Masks {
  const masks = new Masks()
  return () => {
    masks.add(values())
    return masks
  }
}

/** The control API of one generation. */
export type ControlApp = ReturnType<typeof createControlApp>
