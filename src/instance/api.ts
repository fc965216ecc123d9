import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../contract/error-response.ts'
import { type AccessControl, accessControl, Callers, Uploads } from '../http/access.ts'
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
  /** The API itself, for what asks it in a caller's name. */
  handle: Api['handle']
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

/** Groups by the first segment of their paths, where that is not their name. */
const BY_FIRST: Readonly<Record<string, Group>> = {
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
 * The group that a path belongs to, with all its methods: what stands behind an id (`/servers/ID/exec`) goes before
 * what stands before it. Paths that lead nowhere belong to one as well, which says so.
 */
function groupOf(url: string): Group {
  const from = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', from)
  const [, first = '', , third = ''] = url.slice(from, end === -1 ? undefined : end).split('/')
  if (Object.hasOwn(BY_FIRST, first)) return BY_FIRST[first] ?? 'servers'
  if (isGroup(third)) return third
  return isGroup(first) ? first : 'servers'
}

/** The API. */
export interface Api {
  /** Answers a request. Never throws. */
  handle(request: Request): Response | Promise<Response>
  /** All routes that documents describe as one Elysia. */
  whole(): Promise<AnyElysia>
}

/**
 * The API: an Elysia for each group of routes, made when the first request for it comes. A start waits for none that
 * nobody asks for, however many there are, and the first answer for one alone.
 */
export function createApi(services: Services, host: HostOptions): Api {
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
    sees: capture?.body,
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
      .use(errorAnswers(logger, methodsOf, () => 'GET /openapi.json lists all paths.', { page, database }))
      .use(requestEntry(ids, host, kept?.begin))
      .use(idempotency)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](parts)))) root.use(routes)
    return root
  }
  const whole = (): Promise<AnyElysia> => mount(Object.keys(GROUPS).filter(isGroup).filter(isDescribed))
  const handle: Api['handle'] = (request) => (faults.any ? faulty(request) : answer(request))
  const parts = { access, services, host, callers, whole, handle }
  const mounted = new Map<Group, AnyElysia>()
  const mounting = new Map<Group, Promise<AnyElysia>>()
  const load = (group: Group): Promise<AnyElysia> => {
    const loading = mounting.get(group) ?? mount([group])
    mounting.set(group, loading)
    void loading.then((app) => mounted.set(group, app))
    return loading
  }
  const answer = (request: Request): Response | Promise<Response> => {
    const group = groupOf(request.url)
    const app = mounted.get(group)
    return app ? app.handle(request) : load(group).then((loaded) => loaded.handle(request))
  }
  const { faults } = services
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
  const withFaults = (request: Request, app: typeof answer): Promise<Response> =>
    faultGate().then((gate) => gate.handle(request, app))
  const faulty = capture?.around(withFaults, answer) ?? ((request: Request) => withFaults(request, answer))
  return { handle, whole }
}
