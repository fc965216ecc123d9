import { type AnyElysia, Elysia } from 'elysia'
import { errorAnswers, methodsByRoutes } from '../contract/error-response.ts'
import { API_OPERATIONS, listOperations, OperationIndex } from '../contract/operations.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import { accessControl, Callers, Uploads } from '../http/authentication.ts'
import { BODY_LIMIT } from '../http/body.ts'
import type { HostOptions } from '../http/host.ts'
import { idempotencyKeys } from '../http/idempotency.ts'
import { originOf } from '../http/origin.ts'
import { requestEntry } from '../http/request-entry.ts'
import { isAccessToken } from '../signin/oauth/grants.ts'
import { Capture } from '../testing/journal/capture.ts'
import { composeApp } from './compose-app.ts'
import { type App, GroupApps } from './group-apps.ts'
import {
  type AppGroup,
  CONTROL_SEGMENT,
  documentedGroups,
  GROUPS,
  type Group,
  groupOf,
  NOT_JOURNALED,
  type RouteDependencies,
  WITHOUT_SESSION,
} from './route-groups.ts'
import type { Services } from './services.ts'
import { appsWithFaults } from './with-faults.ts'
import { withSession } from './with-session.ts'

/** The API and the control API. */
export interface Api {
  /** Returns the app that a URL leads to; a promise of it while it is loaded. An app never throws. */
  appAt(url: string): App | Promise<App>
  /** Returns all routes that documents describe as one Elysia. */
  whole(): Promise<AnyElysia>
}

/**
 * Creates the API: one Elysia app for each group of routes, created at the first request for it. Neither the start
 * nor the first response waits for other groups, so a path's group is looked up here, before Elysia's own router:
 *
 *     URL → groupOf       the group of routes, by the path (route-groups.ts)
 *         → withSession   identifies a browser that is signed in, if the group takes sessions (with-session.ts)
 *         → withFaults    only while faults are set, and never for the control API (with-faults.ts)
 *         → GroupApps     the group's app, loaded at its first request (group-apps.ts), by mountGroup; control has groups of its own
 *
 * @param control creates the control API at its first request
 * @param commands for the reference
 * @param bodySilenceMs as in `Callers`
 */
export function createApi(
  services: Services,
  host: HostOptions,
  control: (callers: Callers) => Promise<App>,
  commands: OperationCommands,
  bodySilenceMs?: number,
): Api {
  const { database, queries, cipher, clock, logger, ids, journal, requests, faults } = services
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
    ...{ access, services, host, callers, commands },
    whole: () => mount(documentedGroups()),
    handle: async (request) => (await appAt(request.url)).fetch(request),
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
      ? (await import('../signin/pages/failure.ts')).signInFailureResponse
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
      .use(requestEntry(ids, host, isKept ? begin : undefined))
      .use(idempotency.plugin)
    for (const routes of await Promise.all(groups.map((group) => GROUPS[group](dependencies))))
      root.use(routes)
    return root
  }
  const mountGroup = async (group: Group): Promise<App> => {
    const app = await mount([group])
    composeApp(app)
    return {
      // Lets what a request causes know it. Reading causes nothing, and is not held up.
      fetch: (request) =>
        request.method === 'GET' || request.method === 'HEAD'
          ? app.fetch(request)
          : requests.run(() => app.fetch(request)),
    }
  }
  const apps = new GroupApps<AppGroup>(
    (group) => (group === CONTROL_SEGMENT ? control(callers) : mountGroup(group)),
    logger,
  )
  const faultyAppOf = appsWithFaults({ services, host, callers, capture, apps })
  const appOf = (group: AppGroup): App | Promise<App> =>
    faults.any && group !== CONTROL_SEGMENT ? faultyAppOf(group) : apps.get(group)
  const identify = async (request: Request): Promise<void> => {
    const { sessionIdentity } = await import('../signin/session/sent-sessions.ts')
    const { signIn, senderOf } = services
    const options = { host, sessions: signIn.sessions, senderOf, logger }
    await callers.identifyBy(request, () => sessionIdentity(request, options))
  }
  const sessionApps = new Map<AppGroup, App>()
  const appAt = (url: string): App | Promise<App> => {
    const group = groupOf(url)
    if (WITHOUT_SESSION.has(group)) return appOf(group)
    const app = sessionApps.get(group) ?? withSession(() => appOf(group), identify)
    sessionApps.set(group, app)
    return app
  }
  return { appAt, whole: dependencies.whole }
}
