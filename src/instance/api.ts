import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../contract/error-response.ts'
import { type AccessControl, accessControl, Callers, Uploads } from '../http/authentication.ts'
import { BODY_LIMIT } from '../http/body.ts'
import { requestEntry } from '../http/entry.ts'
import type { HostOptions } from '../http/host.ts'
import { idempotencyKeys } from '../http/idempotency.ts'
import { originOf } from '../http/origin.ts'
import { once } from '../runtime/once.ts'
import { isAccessToken } from '../signin/oauth/grants.ts'
import { Capture } from '../testing/journal/capture.ts'
import type { Services } from './services.ts'

/** What the routes of a group are made of. */
interface Parts {
  access: AccessControl
  services: Services
  host: HostOptions
  callers: Callers
  /** The whole API, for what describes it. */
  whole: () => Promise<AnyElysia>
  /** Responds to what is asked in a caller's name. */
  handle: App['fetch']
}

/** Every group of routes, in the order in which documents list them. Each is loaded when it is first asked for. */
const GROUPS = {
  documents: async ({ whole }: Parts) => {
    const [{ openApiRoutes }, { API_DOCUMENT }, { docsRoutes }] = await Promise.all([
      import('../contract/openapi/routes.ts'),
      import('../resources/openapi.ts'),
      import('../http/docs/routes.ts'),
    ])
    return new Elysia().use(openApiRoutes({ app: whole, facts: API_DOCUMENT })).use(docsRoutes())
  },
  servers: async ({ access, services }: Parts) =>
    (await import('../resources/servers/routes.ts')).serversRoutes(access, services.servers),
  exec: async ({ access, services }: Parts) =>
    (await import('../resources/exec/routes.ts')).execRoutes(access, services.exec),
  files: async ({ access, services }: Parts) =>
    (await import('../resources/files/routes.ts')).filesRoutes(access, services.files),
  deployments: async ({ access, services }: Parts) =>
    (await import('../resources/deployments/routes.ts')).deploymentsRoutes(access, services.deployments),
  tasks: async ({ access, services }: Parts) =>
    (await import('../resources/tasks/routes.ts')).tasksRoutes(access, services.tasks),
  builds: async ({ access, services }: Parts) =>
    (await import('../resources/builds/routes.ts')).buildsRoutes(access, services.builds),
  projects: async ({ access, services }: Parts) =>
    (await import('../resources/projects/routes.ts')).projectsRoutes(access, services.projects),
  secrets: async ({ access, services }: Parts) =>
    (await import('../resources/secrets/routes.ts')).secretsRoutes(
      access,
      services.secrets,
      services.projects,
    ),
  keys: async ({ access, services }: Parts) =>
    (await import('../resources/keys/routes.ts')).keysRoutes(access, services.keys),
  templates: async ({ access, services }: Parts) =>
    (await import('../resources/templates/routes.ts')).templatesRoutes(access, services.templates),
  webhooks: async ({ access, services }: Parts) =>
    (await import('../resources/webhooks/routes.ts')).webhooksRoutes(access, services.webhooks),
  signIn: async ({ services, host }: Parts) =>
    (await import('../signin/routes.ts')).signInRoutes(services, host),
  mcp: async ({ services, host, callers, whole, handle }: Parts) =>
    (await import('../resources/mcp/routes.ts')).mcpRoutes({ ...services, host, callers, whole, handle }),
}

type Group = keyof typeof GROUPS

/** The control API, which is an app of its own. */
const CONTROL = '_berth'

/** Groups by the first segment of their paths, if that is not their name. */
const BY_FIRST: Readonly<Record<string, Group | typeof CONTROL>> = {
  [CONTROL]: CONTROL,
  docs: 'documents',
  'openapi.json': 'documents',
  '': 'signIn',
  '.well-known': 'signIn',
  cli: 'signIn',
  oauth: 'signIn',
  signin: 'signIn',
  signout: 'signIn',
  access: 'signIn',
}

/** Groups that are no part of the API that documents describe. */
const UNDESCRIBED: ReadonlySet<Group> = new Set(['signIn', 'mcp'])

/** Groups that people's browsers and what signs in ask for, and no client of the API: the journal keeps nothing of them. */
const UNKEPT: ReadonlySet<Group> = new Set(['documents', ...UNDESCRIBED])

/** Paths whose requests only carry requests to the API, which faults strike by themselves. */
const CARRIERS: ReadonlySet<string> = new Set(['/mcp'])

const isDescribed = (group: Group): boolean => !UNDESCRIBED.has(group)

const isGroup = (name: string): name is Group => Object.hasOwn(GROUPS, name)

/**
 * Returns the group of routes that a URL's path belongs to. A group has all methods of its paths. The segment behind an
 * id (`/servers/ID/exec`) counts before the first one. A path that nothing is at belongs to a group too, which says so.
 */
function groupOf(url: string): Group | typeof CONTROL {
  const from = url.indexOf('/', url.indexOf('//') + 2) + 1
  const query = url.indexOf('?', from)
  const path = url.slice(from, query === -1 ? undefined : query)
  const firstEnd = path.indexOf('/')
  const first = firstEnd === -1 ? path : path.slice(0, firstEnd)
  if (Object.hasOwn(BY_FIRST, first)) return BY_FIRST[first] ?? 'servers'
  const third = firstEnd === -1 ? undefined : path.split('/', 3)[2]
  if (third !== undefined && isGroup(third)) return third
  return isGroup(first) ? first : 'servers'
}

/** What responds to requests: an Elysia, or what stands before one. */
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
 * Creates the API: an Elysia for each group of routes, made when the first request for it comes. A start waits for none
 * of them, however many there are, and the first response for its own group only. That is why a path's group is looked
 * up here, before Elysia's own router.
 *
 * @param control makes the control API at its first request
 */
export function createApi(services: Services, host: HostOptions, control: () => Promise<App>): Api {
  const callers = new Callers(
    (credential, request) =>
      isAccessToken(credential)
        ? services.signIn.grants.authenticate(credential, originOf(request, host))
        : services.keys.authenticate(credential),
    services.credentialChanges,
  )
  const uploads = new Uploads()
  const { database, queries, cipher, clock, logger, ids, journal } = services
  const capture = journal.isOn ? new Capture({ journal, callers, clock }) : null
  const access = accessControl({
    callers,
    uploads,
    bodyLimit: BODY_LIMIT,
    changes: services.credentialChanges,
    onBody: capture?.body,
  })
  const idempotency = idempotencyKeys(queries, cipher, clock, callers, uploads, (id) =>
    services.state.hasAccount(id),
  )
  /** Order matters: failures are caught before anything can fail, and a request's id and Host header come before its route. */
  const mount = async (groups: readonly Group[]): Promise<AnyElysia> => {
    // `normalize: false` refuses fields that a shape does not know, in requests and in our own answers.
    const root: AnyElysia = new Elysia({ name: 'berth', normalize: false })
    const methodsOf = methodsByRoutes(() => root.routes)
    const kept = groups.some((group) => !UNKEPT.has(group)) ? capture : null
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
      .use(requestEntry(ids, host, kept?.begin))
      .use(idempotency.plugin)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](parts)))) root.use(routes)
    return root
  }
  const whole = (): Promise<AnyElysia> => mount(Object.keys(GROUPS).filter(isGroup).filter(isDescribed))
  const loaded = new Map<string, App>()
  const loading = new Map<string, Promise<App>>()
  const load = (group: Group | typeof CONTROL): Promise<App> => {
    const app = loading.get(group) ?? (group === CONTROL ? control() : mount([group]))
    loading.set(group, app)
    void app.then((ready) => loaded.set(group, ready))
    return app
  }
  const { faults } = services
  const appAt: Api['appAt'] = (url) => {
    const group = groupOf(url)
    if (faults.any && group !== CONTROL) return faultyApp
    return loaded.get(group) ?? load(group)
  }
  const respond = async (request: Request): Promise<Response> => (await appAt(request.url)).fetch(request)
  const parts = { access, services, host, callers, whole, handle: respond }
  const faultGate = once(async () => {
    const { FaultGate } = await import('../testing/faults/gate.ts')
    return new FaultGate({
      store: faults,
      callers,
      host,
      ids,
      carriers: CARRIERS,
      backend: () => services.compute.failure(),
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
