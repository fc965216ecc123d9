import { type AnyElysia, Elysia } from 'elysia'
import { API_OPERATIONS, CONTROL_OPERATIONS, listOperations, OperationIndex } from '../contract/operations.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import type { AccessControl, Callers } from '../http/authentication.ts'
import type { HostOptions } from '../http/host.ts'
import { originOf } from '../http/origin.ts'
import type { GroupApp } from './group-apps.ts'
import type { Services } from './services.ts'

/** Dependencies of the route groups. */
export interface RouteDependencies {
  access: AccessControl
  services: Services
  /** Fires when the generation ends: requests that wait end too. */
  stopping: AbortSignal
  host: HostOptions
  callers: Callers
  /** Returns the whole API, for documents that describe it. */
  whole: () => Promise<AnyElysia>
  commands: OperationCommands
  /** Responds to a request made on behalf of a caller. */
  handle: GroupApp['fetch']
}

/** Every group of routes, in the order in which documents list them. Each is loaded when it is first asked for. */
export const GROUPS = {
  documents: async ({ services, whole, host, commands }: RouteDependencies) => {
    const [
      { openApiRoutes },
      { API_DOCUMENT },
      reference,
      { pageViewer },
      { GUIDE_PATH, guideRoutes },
      { pageAssetRoutes },
    ] = await Promise.all([
      import('../contract/openapi/routes.ts'),
      import('../resources/openapi.ts'),
      import('../contract/reference/routes.ts'),
      import('../signin/session/browser-requests.ts'),
      import('../http/docs/guide/routes.ts'),
      import('../http/pages/routes.ts'),
    ])
    const viewing = { ...services, host, sessions: services.signIn.sessions }
    const readerOf = pageViewer(viewing, GUIDE_PATH, false)
    return new Elysia()
      .use(openApiRoutes({ app: whole, facts: API_DOCUMENT }))
      .use(
        reference.referenceRoutes({
          path: '/docs',
          title: 'API reference',
          document: '/openapi.json',
          credential: 'API key',
          app: whole,
          facts: API_DOCUMENT,
          commands,
          origin: (request) => originOf(request, host),
          viewer: pageViewer(viewing, '/docs', false),
        }),
      )
      .use(reference.referenceAssetRoutes())
      .use(guideRoutes(referenceOf, async (request) => (await readerOf(request))?.header ?? null))
      .use(pageAssetRoutes())
  },
  servers: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/servers/routes.ts')).serversRoutes(access, services.servers),
  exec: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/exec/routes.ts')).execRoutes(
      access,
      services.exec,
      services.executions,
      services.leaves,
    ),
  executions: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/exec/executions-routes.ts')).executionsRoutes(access, services.executions),
  terminals: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/terminals/routes.ts')).terminalsRoutes(access, services.terminals),
  processes: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/processes/routes.ts')).processesRoutes(access, services.processes),
  usage: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/usage/routes.ts')).usageRoutes(
      access,
      services.usage,
      services.changeStreams,
    ),
  files: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/files/routes.ts')).filesRoutes(access, services.files),
  deployments: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/deployments/routes.ts')).deploymentsRoutes(access, services.deployments),
  tasks: async ({ access, services, stopping }: RouteDependencies) =>
    (await import('../resources/tasks/routes.ts')).tasksRoutes(access, services.tasks, {
      ...services,
      stopping,
    }),
  builds: async ({ access, services, stopping }: RouteDependencies) =>
    (await import('../resources/builds/routes.ts')).buildsRoutes(access, services.builds, {
      ...services,
      stopping,
    }),
  projects: async ({ access, services, stopping }: RouteDependencies) =>
    (await import('../resources/projects/routes.ts')).projectsRoutes(access, services.projects, {
      ...services,
      stopping,
    }),
  secrets: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/secrets/routes.ts')).secretsRoutes(
      access,
      services.secrets,
      services.projects,
    ),
  keys: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/keys/routes.ts')).keysRoutes(access, services.keys),
  programs: async ({ access, services }: RouteDependencies) =>
    (await import('../signin/access/api.ts')).accessApiRoutes(access, services),
  templates: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/templates/routes.ts')).templatesRoutes(access, services.templates),
  webhooks: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/webhooks/routes.ts')).webhooksRoutes(access, services.webhooks),
  changes: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/changes/routes.ts')).changesRoutes(access, services.changeStreams),
  signIn: async ({ services, host }: RouteDependencies) =>
    (await import('../signin/routes.ts')).signInRoutes(services, host),
  mcp: async ({ services, host, callers, whole, handle }: RouteDependencies) =>
    (await import('../resources/mcp/routes.ts')).mcpRoutes({
      ...services,
      outputLimit: services.mcpOutput,
      hide: services.hideCredentials,
      host,
      callers,
      whole,
      handle,
    }),
}

/** Returns the place of an operation in its reference. */
function referenceOf(method: string, path: string): string | null {
  const isControl = path.startsWith(`/${CONTROL_SEGMENT}/`)
  const operations = listOperations(isControl ? CONTROL_OPERATIONS : API_OPERATIONS)
  const operation = new OperationIndex(operations).match(method, path)
  return operation ? `${isControl ? '/_berth/docs' : '/docs'}#${operation.id}` : null
}

/** A group of routes of the API. */
export type Group = keyof typeof GROUPS

/** First path segment of the control API, which is a separate app and counts as one group. */
export const CONTROL_SEGMENT = '_berth'

/** What has an app of its own. */
export type AppGroup = Group | typeof CONTROL_SEGMENT

/** Groups by the first segment of their paths, if that is not their name. */
const GROUPS_BY_FIRST_SEGMENT: Readonly<Record<string, AppGroup>> = {
  [CONTROL_SEGMENT]: CONTROL_SEGMENT,
  docs: 'documents',
  'openapi.json': 'documents',
  'llms.txt': 'documents',
  pages: 'documents',
  '': 'signIn',
  '.well-known': 'signIn',
  cli: 'signIn',
  oauth: 'signIn',
  signin: 'signIn',
  signout: 'signIn',
  access: 'signIn',
  account: 'programs',
  browsers: 'programs',
  dashboard: 'signIn',
}

/** Groups that are no part of the API that documents describe. */
const UNDOCUMENTED: ReadonlySet<Group> = new Set(['signIn', 'mcp'])

/** Groups for browsers and sign-in rather than API clients. The journal omits their requests. */
export const NOT_JOURNALED: ReadonlySet<Group> = new Set(['documents', ...UNDOCUMENTED])

/** Groups that do not take the session of a browser as a credential of the API. */
export const WITHOUT_SESSION: ReadonlySet<AppGroup> = new Set(['documents', 'signIn'])

/**
 * Paths that faults apply to only if they name them. `/mcp` carries requests to the API, which faults apply to by
 * themselves; the others are pages on which people sign in.
 */
const NAMED_PATHS: ReadonlySet<string> = new Set(['/mcp', '/oauth/authorize', '/cli/authorize'])

/** First segments of such paths: pages about the instance, and the documents that they are made of. */
const NAMED_SEGMENTS: ReadonlySet<string> = new Set(['docs', 'openapi.json', 'llms.txt', 'access'])

/** Reports whether a fault applies to a path only if it names exactly that path. */
export const needsNamedFault = (path: string): boolean =>
  NAMED_PATHS.has(path) || NAMED_SEGMENTS.has(path.split('/', 2)[1] ?? '')

/** First segments of the paths of the dashboard's page, which faults of everything leave alone. */
export const DASHBOARD_SEGMENTS: ReadonlySet<string> = new Set([
  '',
  'dashboard',
  'pages',
  'signin',
  'signout',
])

/** Returns the groups that documents describe, in their order. */
export const documentedGroups = (): Group[] =>
  Object.keys(GROUPS)
    .filter(isGroup)
    .filter((group) => !UNDOCUMENTED.has(group))

const isGroup = (name: string): name is Group => Object.hasOwn(GROUPS, name)

/**
 * Returns the group of routes for a URL's path. A group has all methods of its paths. The segment after an id
 * (`/servers/ID/exec`) takes precedence over the first one. Unknown paths belong to a group too, which responds with
 * 404.
 */
export function groupOf(url: string): AppGroup {
  const from = url.indexOf('/', url.indexOf('//') + 2) + 1
  const query = url.indexOf('?', from)
  const path = url.slice(from, query === -1 ? undefined : query)
  const firstEnd = path.indexOf('/')
  const first = firstEnd === -1 ? path : path.slice(0, firstEnd)
  if (Object.hasOwn(GROUPS_BY_FIRST_SEGMENT, first)) return GROUPS_BY_FIRST_SEGMENT[first] ?? 'servers'
  const third = firstEnd === -1 ? undefined : path.split('/', 3)[2]
  if (third !== undefined && isGroup(third)) return third
  return isGroup(first) ? first : 'servers'
}
