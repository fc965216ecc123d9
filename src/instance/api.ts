import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../contract/error-response.ts'
import { API_OPERATIONS, CONTROL_OPERATIONS, listOperations, OperationIndex } from '../contract/operations.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import { type AccessControl, accessControl, Callers, Uploads } from '../http/authentication.ts'
import { BODY_LIMIT } from '../http/body.ts'
import { requestEntry } from '../http/entry.ts'
import type { HostOptions } from '../http/host.ts'
import { idempotencyKeys } from '../http/idempotency.ts'
import { originOf } from '../http/origin.ts'
import { SESSION_COOKIE_PREFIX } from '../http/session-cookie.ts'
import { once } from '../runtime/once.ts'
import { isAccessToken } from '../signin/oauth/grants.ts'
import { Capture } from '../testing/journal/capture.ts'
import type { Services } from './services.ts'

/** Dependencies of the route groups. */
interface RouteDependencies {
  access: AccessControl
  services: Services
  host: HostOptions
  callers: Callers
  /** Returns the whole API, for documents that describe it. */
  whole: () => Promise<AnyElysia>
  commands: OperationCommands
  /** Responds to a request made on behalf of a caller. */
  handle: App['fetch']
}

/** Every group of routes, in the order in which documents list them. Each is loaded when it is first asked for. */
const GROUPS = {
  documents: async ({ services, whole, host, commands }: RouteDependencies) => {
    const [
      { openApiRoutes },
      { API_DOCUMENT },
      reference,
      { referenceViewer },
      { guideRoutes },
      { pageAssetRoutes },
    ] = await Promise.all([
      import('../contract/openapi/routes.ts'),
      import('../resources/openapi.ts'),
      import('../contract/reference/routes.ts'),
      import('../signin/pages/viewer.ts'),
      import('../http/docs/guide/routes.ts'),
      import('../http/pages/routes.ts'),
    ])
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
          viewer: referenceViewer({ ...services, host, sessions: services.signIn.sessions }, '/docs', false),
        }),
      )
      .use(reference.referenceAssetRoutes())
      .use(guideRoutes(referenceOf))
      .use(pageAssetRoutes())
  },
  servers: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/servers/routes.ts')).serversRoutes(access, services.servers),
  exec: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/exec/routes.ts')).execRoutes(access, services.exec),
  terminals: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/terminals/routes.ts')).terminalsRoutes(access, services.terminals),
  processes: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/processes/routes.ts')).processesRoutes(access, services.processes),
  usage: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/usage/routes.ts')).usageRoutes(access, services.usage),
  files: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/files/routes.ts')).filesRoutes(access, services.files),
  deployments: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/deployments/routes.ts')).deploymentsRoutes(access, services.deployments),
  tasks: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/tasks/routes.ts')).tasksRoutes(access, services.tasks),
  builds: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/builds/routes.ts')).buildsRoutes(access, services.builds),
  projects: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/projects/routes.ts')).projectsRoutes(access, services.projects),
  secrets: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/secrets/routes.ts')).secretsRoutes(
      access,
      services.secrets,
      services.projects,
    ),
  keys: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/keys/routes.ts')).keysRoutes(access, services.keys),
  templates: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/templates/routes.ts')).templatesRoutes(access, services.templates),
  webhooks: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/webhooks/routes.ts')).webhooksRoutes(access, services.webhooks),
  changes: async ({ access, services }: RouteDependencies) =>
    (await import('../resources/changes/routes.ts')).changesRoutes(access, services.changeStreams),
  signIn: async ({ services, host }: RouteDependencies) =>
    (await import('../signin/routes.ts')).signInRoutes(services, host),
  mcp: async ({ services, host, callers, whole, handle }: RouteDependencies) =>
    (await import('../resources/mcp/routes.ts')).mcpRoutes({ ...services, host, callers, whole, handle }),
}

/** Returns the place of an operation in its reference. */
function referenceOf(method: string, path: string): string | null {
  const isControl = path.startsWith(`/${CONTROL_SEGMENT}/`)
  const operations = listOperations(isControl ? CONTROL_OPERATIONS : API_OPERATIONS)
  const operation = new OperationIndex(operations).match(method, path)
  return operation ? `${isControl ? '/_berth/docs' : '/docs'}#${operation.id}` : null
}

type Group = keyof typeof GROUPS

/** First path segment of the control API, which is a separate app. */
const CONTROL_SEGMENT = '_berth'

/** Groups by the first segment of their paths, if that is not their name. */
const GROUPS_BY_FIRST_SEGMENT: Readonly<Record<string, Group | typeof CONTROL_SEGMENT>> = {
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
  dashboard: 'signIn',
}

/** Groups that are no part of the API that documents describe. */
const UNDOCUMENTED: ReadonlySet<Group> = new Set(['signIn', 'mcp'])

/** Groups for browsers and sign-in rather than API clients. The journal omits their requests. */
const NOT_JOURNALED: ReadonlySet<Group> = new Set(['documents', ...UNDOCUMENTED])

/** Groups that do not take the session of a browser as a credential of the API. */
const WITHOUT_SESSION: ReadonlySet<Group | typeof CONTROL_SEGMENT> = NOT_JOURNALED

/** Paths whose requests only carry requests to the API, which faults strike by themselves. */
const CARRIER_PATHS: ReadonlySet<string> = new Set(['/mcp'])

/** First segments of the paths of the dashboard's page, which faults of everything leave alone. */
const DASHBOARD_SEGMENTS: ReadonlySet<string> = new Set(['', 'dashboard', 'pages', 'signin', 'signout'])

const isDocumented = (group: Group): boolean => !UNDOCUMENTED.has(group)

const isGroup = (name: string): name is Group => Object.hasOwn(GROUPS, name)

/**
 * Returns the group of routes for a URL's path. A group has all methods of its paths. The segment after an id
 * (`/servers/ID/exec`) takes precedence over the first one. Unknown paths belong to a group too, which responds with
 * 404.
 */
function groupOf(url: string): Group | typeof CONTROL_SEGMENT {
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

/** Reports whether a request has a session of a browser as its only credential. Few requests have a cookie at all. */
const isBySession = ({ headers }: Request): boolean =>
  headers.has('cookie') &&
  !headers.has('authorization') &&
  (headers.get('cookie') ?? '').includes(SESSION_COOKIE_PREFIX)

/** Responds to requests: an Elysia app, or a wrapper around one. */
export interface App {
  fetch(request: Request): Response | Promise<Response>
}

/** The API and the control API. */
export interface Api {
  /** Returns the app that a URL leads to; a promise of it while it is loaded. An app never throws. */
  appAt(url: string): App | Promise<App>
  /** Returns all routes that documents describe as one Elysia. */
  whole(): Promise<AnyElysia>
}

/**
 * Creates the API: one Elysia app for each group of routes, created at the first request for it. Neither the start
 * nor the first response waits for other groups, so a path's group is looked up here, before Elysia's own router.
 *
 * @param control creates the control API at its first request
 * @param commands for the reference
 */
export function createApi(
  services: Services,
  host: HostOptions,
  control: (callers: Callers) => Promise<App>,
  commands: OperationCommands,
): Api {
  const callers = new Callers(
    (credential, request) =>
      isAccessToken(credential)
        ? services.signIn.grants.authenticate(credential, originOf(request, host))
        : services.keys.authenticate(credential),
    services.credentialChanges,
  )
  const uploads = new Uploads()
  const { database, queries, cipher, clock, logger, ids, journal, requests } = services
  const capture = journal.isOn ? new Capture({ journal, callers, clock }) : null
  const access = accessControl({
    callers,
    uploads,
    bodyLimit: BODY_LIMIT,
    onBody: capture?.body,
  })
  const idempotency = idempotencyKeys(queries, cipher, clock, callers, uploads, (id) =>
    services.state.hasAccount(id),
  )
  const begin = (set: { headers: Record<string, unknown> }, request: Request): void => {
    requests.begin(String(set.headers['x-request-id']))
    capture?.begin(set, request)
  }
  /** Order matters: error handling first, then the request id and the Host check, then the routes. */
  const mount = async (groups: readonly Group[]): Promise<AnyElysia> => {
    // `normalize: false` refuses fields that a schema does not have, in requests and in responses.
    const root: AnyElysia = new Elysia({ name: 'berth', normalize: false })
    const methodsOf = methodsByRoutes(() => root.routes)
    const isKept = groups.some((group) => !NOT_JOURNALED.has(group))
    const kept = isKept ? capture : null
    if (kept) root.use(kept.plugin())
    const page = groups.includes('signIn')
      ? (await import('../signin/failure-response.ts')).signInFailureResponse
      : undefined
    root
      .use(
        errorAnswers(logger, methodsOf, () => 'GET /openapi.json lists all paths.', {
          page,
          database,
          onFailure: idempotency.end,
        }),
      )
      .use(requestEntry(ids, host, isKept ? begin : undefined))
      .use(idempotency.plugin)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](parts)))) root.use(routes)
    return root
  }
  const whole = (): Promise<AnyElysia> => mount(Object.keys(GROUPS).filter(isGroup).filter(isDocumented))
  const loaded = new Map<string, App>()
  const loading = new Map<string, Promise<App>>()
  const load = (group: Group | typeof CONTROL_SEGMENT): Promise<App> => {
    const app =
      loading.get(group) ?? (group === CONTROL_SEGMENT ? control(callers) : mount([group]).then(withContext))
    loading.set(group, app)
    void app.then((ready) => loaded.set(group, ready))
    return app
  }
  /** Lets what a request causes know it. Reading causes nothing, and is not held up. */
  const withContext = (app: App): App => ({
    fetch: (request) =>
      request.method === 'GET' || request.method === 'HEAD'
        ? app.fetch(request)
        : requests.run(() => app.fetch(request)),
  })
  const { faults } = services
  const appOf = (group: Group | typeof CONTROL_SEGMENT): App | Promise<App> =>
    faults.any && group !== CONTROL_SEGMENT ? faultyApp : (loaded.get(group) ?? load(group))
  const identifyBySession = async (request: Request): Promise<void> => {
    const { sessionIdentity } = await import('../signin/session/session-identity.ts')
    const { signIn, isSentFromServer } = services
    const options = { host, sessions: signIn.sessions, isSentFromServer, logger }
    await callers.identifyBy(request, () => sessionIdentity(request, options))
  }
  /** Wraps a group: a browser that is signed in may use it by its session. */
  const openedBySession = (group: Group | typeof CONTROL_SEGMENT): App => ({
    fetch(request) {
      if (isBySession(request)) return bySession(request, group)
      const app = appOf(group)
      return app instanceof Promise ? app.then((ready) => ready.fetch(request)) : app.fetch(request)
    },
  })
  const bySession = async (request: Request, group: Group | typeof CONTROL_SEGMENT): Promise<Response> => {
    await identifyBySession(request)
    const response = await (await appOf(group)).fetch(request)
    // Browsers and proxies may store responses to requests with a cookie (RFC 9111, 3.5 is about Authorization alone).
    response.headers.set('cache-control', 'no-store')
    return response
  }
  const byGroup = new Map<string, App>()
  const appAt: Api['appAt'] = (url) => {
    const group = groupOf(url)
    if (WITHOUT_SESSION.has(group)) return appOf(group)
    const app = byGroup.get(group) ?? openedBySession(group)
    byGroup.set(group, app)
    return app
  }
  const respond = async (request: Request): Promise<Response> => (await appAt(request.url)).fetch(request)
  const parts = { access, services, host, callers, whole, commands, handle: respond }
  const faultGate = once(async () => {
    const { FaultGate } = await import('../testing/faults/gate.ts')
    return new FaultGate({
      store: faults,
      callers,
      host,
      ids,
      carriers: CARRIER_PATHS,
      dashboardSegments: DASHBOARD_SEGMENTS,
      backend: () => services.compute.backendFailure(),
    })
  })
  const faultless = async (request: Request): Promise<Response> => {
    const group = groupOf(request.url)
    return (loaded.get(group) ?? (await load(group))).fetch(request)
  }
  const withFaults = async (request: Request, app: App['fetch']): Promise<Response> =>
    (await faultGate()).handle(request, app)
  const faultyApp: App = {
    fetch: capture?.around(withFaults, faultless) ?? ((request: Request) => withFaults(request, faultless)),
  }
  return { appAt, whole }
}
