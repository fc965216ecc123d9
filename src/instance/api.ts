import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../contract/error-response.ts'
import type { DescribedOperation } from '../contract/operation.ts'
import { API_OPERATIONS, listOperations, OperationIndex } from '../contract/operations.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import { accessControl, Callers, Uploads } from '../http/authentication.ts'
import { BODY_LIMIT } from '../http/body.ts'
import type { HostOptions } from '../http/host.ts'
import { idempotencyKeys } from '../http/idempotency.ts'
import { originOf } from '../http/origin.ts'
import { requestEntry } from '../http/request-entry.ts'
import { SESSION_COOKIE_PREFIX } from '../http/session-cookie.ts'
import { once } from '../runtime/once.ts'
import { isAccessToken } from '../signin/sign-in.ts'
import { Capture, loadFaultGate } from '../testing/testing.ts'
import { type GroupApp, GroupApps } from './group-apps.ts'
import {
  type AppGroup,
  CONTROL_SEGMENT,
  DASHBOARD_SEGMENTS,
  documentedGroups,
  GROUPS,
  type Group,
  groupOf,
  NOT_JOURNALED,
  needsNamedFault,
  type RouteDependencies,
  WITHOUT_SESSION,
} from './route-groups.ts'
import type { Services } from './services.ts'

/** The API and the control API. */
export interface Api {
  /** Responds to a request. Never throws. */
  dispatch(request: Request): Promise<Response>
  /** Returns all routes that documents describe as one Elysia. */
  whole(): Promise<AnyElysia>
  /** Returns the operations of the routes that a URL's path belongs to. */
  describe(url: string): Promise<readonly DescribedOperation[]>
}

/**
 * Creates the API: one Elysia app for each group of routes, created at the first request for it. Neither the start
 * nor the first response waits for other groups, so `dispatch` finds a path's group (route-groups.ts) before Elysia's own
 * router.
 *
 * @param stopping fires when the generation ends
 * @param control creates the control API at its first request
 * @param commands for the reference
 * @param bodySilenceMs as in `Callers`
 */
export function createApi(
  services: Services,
  stopping: AbortSignal,
  host: HostOptions,
  control: (callers: Callers, whole: () => Promise<AnyElysia>) => Promise<GroupApp>,
  commands: OperationCommands,
  bodySilenceMs?: number,
): Api {
  const { database, queries, cipher, clock, logger, ids, journal, requests, faults, recorder } = services
  const callers = new Callers(
    (credential, request) =>
      isAccessToken(credential)
        ? services.signIn.grants.authenticate(credential, originOf(request, host))
        : services.keys.authenticate(credential),
    services.credentialChanges,
    services.expire,
    bodySilenceMs,
  )
  const uploads = new Uploads()
  const capture = journal.isOn ? new Capture({ journal, callers, clock, ids }) : null
  const access = accessControl({ callers, uploads, bodyLimit: BODY_LIMIT, onBody: capture?.body })
  const idempotency = idempotencyKeys(queries, cipher, clock, callers, uploads, (id) =>
    services.state.hasAccount(id),
  )
  const begin = (set: { headers: Record<string, unknown> }, request: Request): void => {
    requests.begin(String(set.headers['x-request-id']))
    capture?.begin(set, request)
  }
  const dependencies: RouteDependencies = {
    ...{ access, services, stopping, host, callers, commands },
    whole: () => mount(documentedGroups()),
    handle: (request) => dispatch(request),
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
      ? (await import('../signin/routes.ts')).signInFailureResponse
      : undefined
    root
      .use(
        errorAnswers(logger, methodsOf, () => 'GET /openapi.json lists all paths.', {
          operations: () => new OperationIndex(listOperations(API_OPERATIONS)),
          page,
          database,
          onFailure: idempotency.end,
        }),
      )
      .use(requestEntry(ids, services.version, host, isKept ? begin : undefined))
      .use(idempotency.plugin)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](dependencies))))
      root.use(routes)
    return root
  }
  const apps = new GroupApps<AppGroup>(
    (group) => (group === CONTROL_SEGMENT ? control(callers, dependencies.whole) : mount([group])),
    logger,
  )
  /** The rules of faults, which are loaded at the first request that one may apply to. */
  const faultGate = once(async () => {
    const { FaultGate } = await loadFaultGate()
    return new FaultGate({
      store: faults,
      callers,
      host,
      ids,
      version: services.version,
      needsNamedFault,
      dashboardSegments: DASHBOARD_SEGMENTS,
      onApplied: capture?.applied,
      backend: () => services.compute.backendFailure(),
    })
  })
  const applyFaults = async (request: Request, next: GroupApp['fetch']): Promise<Response> =>
    (await faultGate()).handle(request, next)
  const identify = async (request: Request): Promise<void> => {
    const { sessionIdentity } = await import('../signin/session/browser-requests.ts')
    const { signIn, senderOf } = services
    const options = { host, sessions: signIn.sessions, senderOf, logger }
    await callers.identifyBy(request, () => sessionIdentity(request, options))
  }
  const dispatch = async (request: Request): Promise<Response> => {
    const group = groupOf(request.url)
    const isOfSession = !WITHOUT_SESSION.has(group) && isBySession(request)
    // Before anything else of the request is read.
    if (isOfSession) await identify(request)
    const toApp = async (request: Request): Promise<Response> => (await apps.get(group)).fetch(request)
    // The journal keeps a request also if a fault responds to it.
    const withFaults = capture?.around(applyFaults, toApp) ?? ((request) => applyFaults(request, toApp))
    const respond = faults.any && group !== CONTROL_SEGMENT ? withFaults : toApp
    // Lets what a request of the API causes know it. Reading causes nothing, and is not held up.
    const causes = group !== CONTROL_SEGMENT && request.method !== 'GET' && request.method !== 'HEAD'
    const response = await (causes ? requests.run(() => respond(request)) : respond(request))
    // Browsers and proxies may store responses to requests with a cookie (RFC 9111, 3.5 is about Authorization alone).
    if (isOfSession) response.headers.set('cache-control', 'no-store')
    if (recorder !== null && (group === CONTROL_SEGMENT || NOT_JOURNALED.has(group)))
      recorder.response(response)
    return response
  }
  const describe = async (url: string): Promise<readonly DescribedOperation[]> => {
    const group = groupOf(url)
    if (group === CONTROL_SEGMENT) return []
    const { describedOperations } = await import('../contract/operation.ts')
    return describedOperations(await mount([group]))
  }
  return { dispatch, whole: dependencies.whole, describe }
}

/** Reports whether a request has a session of a browser as its only credential. Few requests have a cookie at all. */
const isBySession = ({ headers }: Request): boolean =>
  headers.has('cookie') &&
  !headers.has('authorization') &&
  (headers.get('cookie') ?? '').includes(SESSION_COOKIE_PREFIX)
