/** All routes of signing in: sessions, the dashboard's page, access, `berth login` and OAuth. */
import { Elysia } from 'elysia'
import type { HostOptions } from '../http/host.ts'
import type { KeysService } from '../resources/keys/service.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Queries } from '../storage/database.ts'
import { accessRoutes } from './access/routes.ts'
import type { ReachableSources } from './account-resources.ts'
import { commandLineRoutes } from './command-line/routes.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { oauthRoutes } from './oauth/routes.ts'
import { BrowserRequests } from './session/browser-requests.ts'
import { sessionRoutes } from './session/routes.ts'
import type { SentSessionsOptions } from './session/sent-sessions.ts'
import type { SignIn } from './sign-in.ts'

export { signInFailureResponse } from './pages/failure.ts'

/** Dependencies of the routes of signing in. */
interface SignInRoutesOptions extends ReachableSources {
  queries: Queries
  clock: Clock
  ids: Ids
  keys: KeysService
  logger: Logger
  signIn: SignIn
  version: string
  /** The data directory, an absolute path. */
  dataDir: string
  /** Reports whether a process on a server sent a request. */
  senderOf: SentSessionsOptions['senderOf']
}

/** Serves all routes by which people, and programs on their behalf, sign in. */
export function signInRoutes(parts: SignInRoutesOptions, host: HostOptions) {
  const { keys, signIn, queries, clock } = parts
  const { sessions, links, grants } = signIn
  const browserRequests = new BrowserRequests({ ...parts, host, sessions })
  return new Elysia({ name: 'berth/signin' })
    .use(sessionRoutes({ browserRequests, sessions, links, keys }))
    .use(dashboardRoutes({ ...parts, browserRequests }))
    .use(accessRoutes({ ...parts, browserRequests, sessions, grants }))
    .use(commandLineRoutes({ browserRequests, sessions, keys, queries, clock, host }))
    .use(oauthRoutes({ ...parts, browserRequests, sessions, grants }, host))
}
