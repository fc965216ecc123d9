import type { ControlParts } from './parts.ts'

/** Every group of routes of the control API, in the order in which its document lists them. Each is loaded when it is first asked for. */
export const CONTROL_GROUPS = {
  documents: async (parts: ControlParts) => (await import('./openapi.ts')).documentRoutes(parts),
  instance: async (parts: ControlParts) => (await import('./health.ts')).instanceRoutes(parts),
  states: async (parts: ControlParts) => (await import('./states.ts')).statesRoutes(parts),
  clock: async (parts: ControlParts) => (await import('./clock.ts')).clockRoutes(parts),
  accounts: async (parts: ControlParts) => (await import('./accounts.ts')).accountsRoutes(parts),
  signInLinks: async (parts: ControlParts) => (await import('./sign-in-links.ts')).signInLinksRoutes(parts),
  requests: async (parts: ControlParts) => (await import('./requests.ts')).requestsRoutes(parts),
  events: async (parts: ControlParts) => (await import('./events.ts')).eventsRoutes(parts),
  localWebhooks: async (parts: ControlParts) =>
    (await import('./local-webhooks.ts')).localWebhooksRoutes(parts),
  deliveries: async (parts: ControlParts) => (await import('./deliveries.ts')).deliveriesRoutes(parts),
  scenarios: async (parts: ControlParts) => (await import('./scenarios.ts')).scenariosRoutes(parts),
  fixtures: async (parts: ControlParts) => (await import('./fixtures.ts')).fixturesRoutes(parts),
  tasks: async (parts: ControlParts) => (await import('./tasks.ts')).controlTasksRoutes(parts),
  inbox: async (parts: ControlParts) => (await import('../inbox/routes.ts')).inboxRoutes(parts),
  wait: async (parts: ControlParts) => (await import('../wait/routes.ts')).waitRoutes(parts),
  serverFiles: async (parts: ControlParts) => (await import('./server-files.ts')).serverFilesRoutes(parts),
  serverNetwork: async (parts: ControlParts) =>
    (await import('./server-network.ts')).serverNetworkRoutes(parts),
  faults: async (parts: ControlParts) => (await import('./faults.ts')).faultsRoutes(parts),
  serverFaults: async (parts: ControlParts) => (await import('./server-faults.ts')).serverFaultsRoutes(parts),
  changes: async (parts: ControlParts) => (await import('./changes.ts')).controlChangesRoutes(parts),
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

/** Groups of the paths of a server, by the segment after its id. */
const GROUPS_OF_SERVERS: Readonly<Record<string, ControlGroup>> = {
  network: 'serverNetwork',
  fault: 'serverFaults',
}

const isGroup = (name: string): name is ControlGroup => Object.hasOwn(CONTROL_GROUPS, name)

/**
 * Returns the group of routes for a URL's path. A group has all methods of its paths. Unknown paths belong to a group too,
 * which responds with 404.
 */
export function controlGroupOf(url: string): ControlGroup {
  const [path = ''] = url.slice(url.indexOf('/', url.indexOf('//') + 2)).split('?', 1)
  const [, , segment = '', , part] = path.split('/', 5)
  if (segment === 'servers') return GROUPS_OF_SERVERS[part ?? ''] ?? 'serverFiles'
  if (Object.hasOwn(GROUPS_BY_SEGMENT, segment)) return GROUPS_BY_SEGMENT[segment] ?? 'instance'
  return isGroup(segment) ? segment : 'instance'
}
