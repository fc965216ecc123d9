import { type AnyElysia, Elysia } from 'elysia'
import { type AccessControl, accessControl, Callers, Uploads } from './http/access.ts'
import { BODY_LIMIT } from './http/body.ts'
import { requestEntry } from './http/entry.ts'
import { errorAnswers, methodsByRoutes } from './http/errors.ts'
import type { HostOptions } from './http/host.ts'
import { idempotencyKeys } from './http/idempotency.ts'
import { Capture } from './http/journal/capture.ts'
import { once } from './runtime/once.ts'
import type { Services } from './services.ts'

/** What the routes of a group are made of. */
interface Parts {
  access: AccessControl
  services: Services
  /** The whole API, for what describes it. */
  whole: () => Promise<AnyElysia>
}

/** Every group of routes, in the order in which documents list them. Each is loaded when it is first asked for. */
const GROUPS = {
  documents: async ({ whole }: Parts) => {
    const [{ openApiRoutes }, { docsRoutes }] = await Promise.all([
      import('./http/openapi/routes.ts'),
      import('./http/docs/routes.ts'),
    ])
    return new Elysia().use(openApiRoutes({ app: whole })).use(docsRoutes())
  },
  servers: async ({ access, services }: Parts) =>
    (await import('./resources/servers/routes.ts')).serversRoutes(access, services.servers),
  exec: async ({ access, services }: Parts) =>
    (await import('./resources/exec/routes.ts')).execRoutes(access, services.exec),
  files: async ({ access, services }: Parts) =>
    (await import('./resources/files/routes.ts')).filesRoutes(access, services.files),
  deployments: async ({ access, services }: Parts) =>
    (await import('./resources/deployments/routes.ts')).deploymentsRoutes(
      access,
      services.hosting.deployments,
    ),
  tasks: async ({ access, services }: Parts) =>
    (await import('./resources/tasks/routes.ts')).tasksRoutes(access, services.tasks.service),
  builds: async ({ access, services }: Parts) =>
    (await import('./resources/builds/routes.ts')).buildsRoutes(access, services.builds.service),
  projects: async ({ access, services }: Parts) =>
    (await import('./resources/projects/routes.ts')).projectsRoutes(access, services.hosting.projects),
  secrets: async ({ access, services }: Parts) =>
    (await import('./resources/secrets/routes.ts')).secretsRoutes(
      access,
      services.secrets,
      services.hosting.projects,
    ),
  keys: async ({ access, services }: Parts) =>
    (await import('./resources/keys/routes.ts')).keysRoutes(access, services.keys),
  templates: async ({ access, services }: Parts) =>
    (await import('./resources/templates/routes.ts')).templatesRoutes(access, services.templates),
  webhooks: async ({ access, services }: Parts) =>
    (await import('./resources/webhooks/routes.ts')).webhooksRoutes(access, services.webhooks),
}

type Group = keyof typeof GROUPS

/** Groups by the first segment of their paths, where that is not their name. */
const BY_FIRST: Readonly<Record<string, Group>> = {
  '': 'documents',
  docs: 'documents',
  'openapi.json': 'documents',
}

const isGroup = (name: string): name is Group => Object.hasOwn(GROUPS, name)

/**
 * The group that a path belongs to, with all its methods: what stands behind an id (`/servers/ID/exec`) goes before
 * what stands before it. Paths that lead nowhere belong to one as well, which says so.
 */
function groupOf(url: string): Group {
  const from = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', from)
  const [, first = '', , third = ''] = url.slice(from, end === -1 ? undefined : end).split('/')
  if (isGroup(third)) return third
  if (Object.hasOwn(BY_FIRST, first)) return BY_FIRST[first] ?? 'servers'
  return isGroup(first) ? first : 'servers'
}

/** The API. */
export interface Api {
  /** Answers a request. Never throws. */
  handle(request: Request): Response | Promise<Response>
  /** All routes as one Elysia, for what describes them. */
  whole(): Promise<AnyElysia>
}

/**
 * The API: an Elysia for each group of routes, made when the first request for it comes. A start waits for none that
 * nobody asks for, however many there are, and the first answer for one alone.
 */
export function createApi(services: Services, host: HostOptions): Api {
  const callers = new Callers((key) => services.keys.authenticate(key))
  const uploads = new Uploads()
  const { queries, cipher, clock, logger, ids, journal } = services
  const capture = journal.isOn ? new Capture({ journal, callers, clock }) : null
  const access = accessControl(callers, uploads, BODY_LIMIT, capture?.body)
  const idempotency = idempotencyKeys(queries, cipher, clock, callers, uploads)
  /** Order matters: failures are caught before anything can fail, and a request's id and Host header come before its route. */
  const mount = async (groups: readonly Group[]): Promise<AnyElysia> => {
    // `normalize: false` refuses fields that a shape does not know, in requests and in our own answers.
    const root: AnyElysia = new Elysia({ name: 'berth', normalize: false })
    const methodsOf = methodsByRoutes(() => root.routes)
    // Documents are for browsers: what these ask for would stand between what a client did.
    const kept = groups.some((group) => group !== 'documents') ? capture : null
    if (kept) root.use(kept.plugin())
    root
      .use(errorAnswers(logger, methodsOf, () => 'GET /openapi.json lists all paths.'))
      .use(requestEntry(ids, host, kept?.begin))
      .use(idempotency)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](parts)))) root.use(routes)
    return root
  }
  const whole = (): Promise<AnyElysia> => mount(Object.keys(GROUPS).filter(isGroup))
  const parts = { access, services, whole }
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
    const [{ FaultGate }, { operationIndex }] = await Promise.all([
      import('./http/faults/gate.ts'),
      import('./http/operation-index.ts'),
    ])
    const operations = async () => operationIndex(await whole())
    return new FaultGate({
      store: faults,
      callers,
      host,
      ids,
      operations,
      backend: () => services.compute.failure(),
    })
  })
  const withFaults = (request: Request, app: typeof answer): Promise<Response> =>
    faultGate().then((gate) => gate.handle(request, app))
  const faulty = capture?.around(withFaults, answer) ?? ((request: Request) => withFaults(request, answer))
  return {
    handle: (request) => (faults.any ? faulty(request) : answer(request)),
    whole,
  }
}
