import type { buildsRoutes } from '../resources/builds/routes.ts'
import type { changesRoutes } from '../resources/changes/routes.ts'
import type { deploymentsRoutes } from '../resources/deployments/routes.ts'
import type { executionsRoutes } from '../resources/exec/executions-routes.ts'
import type { execRoutes } from '../resources/exec/routes.ts'
import type { filesRoutes } from '../resources/files/routes.ts'
import type { keysRoutes } from '../resources/keys/routes.ts'
import type { processesRoutes } from '../resources/processes/routes.ts'
import type { projectsRoutes } from '../resources/projects/routes.ts'
import type { secretsRoutes } from '../resources/secrets/routes.ts'
import type { serversRoutes } from '../resources/servers/routes.ts'
import type { tasksRoutes } from '../resources/tasks/routes.ts'
import type { templatesRoutes } from '../resources/templates/routes.ts'
import type { terminalsRoutes } from '../resources/terminals/routes.ts'
import type { usageRoutes } from '../resources/usage/routes.ts'
import type { webhooksRoutes } from '../resources/webhooks/routes.ts'
import type { accessApiRoutes } from '../signin/access/api.ts'
import type { commandLineRoutes } from '../signin/command-line/routes.ts'
import type { accountsRoutes } from '../testing/api/accounts.ts'
import type { controlChangesRoutes } from '../testing/api/changes.ts'
import type { clockRoutes } from '../testing/api/clock.ts'
import type { deliveriesRoutes } from '../testing/api/deliveries.ts'
import type { eventsRoutes } from '../testing/api/events.ts'
import type { faultsRoutes } from '../testing/api/faults.ts'
import type { fixturesRoutes } from '../testing/api/fixtures.ts'
import type { instanceRoutes } from '../testing/api/health.ts'
import type { localWebhooksRoutes } from '../testing/api/local-webhooks.ts'
import type { requestsRoutes } from '../testing/api/requests.ts'
import type { scenariosRoutes } from '../testing/api/scenarios.ts'
import type { serverFaultsRoutes } from '../testing/api/server-faults.ts'
import type { serverNetworkRoutes } from '../testing/api/server-network.ts'
import type { signInLinksRoutes } from '../testing/api/sign-in-links.ts'
import type { statesRoutes } from '../testing/api/states.ts'
import type { controlTasksRoutes } from '../testing/api/tasks.ts'
import type { inboxRoutes } from '../testing/inbox/routes.ts'
import type { waitRoutes } from '../testing/wait/routes.ts'

/** The routes of a factory, as Elysia infers them: a tree by the segments of the path, then the method. */
type RoutesOf<Factory extends (...parts: never[]) => { '~Routes': unknown }> = ReturnType<Factory>['~Routes']

/** The routes of the API. */
type ApiRoutes = RoutesOf<typeof serversRoutes> &
  RoutesOf<typeof execRoutes> &
  RoutesOf<typeof executionsRoutes> &
  RoutesOf<typeof terminalsRoutes> &
  RoutesOf<typeof processesRoutes> &
  RoutesOf<typeof usageRoutes> &
  RoutesOf<typeof filesRoutes> &
  RoutesOf<typeof deploymentsRoutes> &
  RoutesOf<typeof tasksRoutes> &
  RoutesOf<typeof buildsRoutes> &
  RoutesOf<typeof projectsRoutes> &
  RoutesOf<typeof secretsRoutes> &
  RoutesOf<typeof keysRoutes> &
  RoutesOf<typeof accessApiRoutes> &
  RoutesOf<typeof templatesRoutes> &
  RoutesOf<typeof webhooksRoutes> &
  RoutesOf<typeof changesRoutes>

/** The routes of the control API. */
type ControlRoutes = RoutesOf<typeof instanceRoutes> &
  RoutesOf<typeof statesRoutes> &
  RoutesOf<typeof clockRoutes> &
  RoutesOf<typeof accountsRoutes> &
  RoutesOf<typeof signInLinksRoutes> &
  RoutesOf<typeof controlChangesRoutes> &
  RoutesOf<typeof requestsRoutes> &
  RoutesOf<typeof eventsRoutes> &
  RoutesOf<typeof localWebhooksRoutes> &
  RoutesOf<typeof deliveriesRoutes> &
  RoutesOf<typeof scenariosRoutes> &
  RoutesOf<typeof fixturesRoutes> &
  RoutesOf<typeof controlTasksRoutes> &
  RoutesOf<typeof inboxRoutes> &
  RoutesOf<typeof waitRoutes> &
  RoutesOf<typeof serverNetworkRoutes> &
  RoutesOf<typeof faultsRoutes> &
  RoutesOf<typeof serverFaultsRoutes>

/**
 * The type of everything that berth serves to clients: the API, the control API and the sign-in of terminals. The app
 * itself is put together at run time, group by group (instance/api.ts); this chains the types of the same factories,
 * and loads nothing.
 */
export interface ServedRoutes {
  '~Routes': ApiRoutes & ControlRoutes & RoutesOf<typeof commandLineRoutes>
}
