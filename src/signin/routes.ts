import { Elysia } from 'elysia'
import type { HostOptions } from '../http/host.ts'
import type { KeysService } from '../resources/keys/service.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Ids } from '../runtime/ids.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Queries } from '../storage/database.ts'
import { accessRoutes } from './access/routes.ts'
import { commandLineRoutes } from './command-line/routes.ts'
import { oauthRoutes } from './oauth/routes.ts'
import type { ReachableParts } from './reachable.ts'
import { sessionRoutes } from './session/routes.ts'
import { Visits } from './session/visits.ts'
import type { SignIn } from './sign-in.ts'

/** What signing in works on. */
interface SignInParts extends ReachableParts {
  queries: Queries
  clock: Clock
  ids: Ids
  keys: KeysService
  logger: Logger
  signIn: SignIn
  /** Whether a process on a server has sent a request. */
  isSentFromServer: (request: Request) => Promise<boolean>
}

/** Everything by which people and the programs that act for them sign in. */
export function signInRoutes(parts: SignInParts, host: HostOptions) {
  const { keys, signIn, queries, clock } = parts
  const { sessions, links, grants } = signIn
  const visits = new Visits({ ...parts, host, sessions })
  return new Elysia({ name: 'berth/signin' })
    .use(sessionRoutes({ visits, sessions, links, keys }))
    .use(accessRoutes({ ...parts, visits, sessions, grants }))
    .use(commandLineRoutes({ visits, sessions, keys, queries, clock, host }))
    .use(oauthRoutes({ ...parts, visits, sessions, grants }, host))
}
