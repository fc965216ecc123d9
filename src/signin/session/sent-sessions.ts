import type { Sender } from '../../compute/driver.ts'
import type { HostOptions } from '../../http/host.ts'
import type { Logger } from '../../runtime/logger.ts'
import { cookiesOf } from './cookie.ts'
import type { BrowserSession, BrowserSessions } from './sessions.ts'

/** Dependencies of what identifies a browser by its session. */
export interface SentSessionsOptions {
  host: HostOptions
  sessions: () => Promise<BrowserSessions>
  /** Finds where the program is that sent a request. One on a server is not the person's browser. */
  senderOf: (request: Request) => Promise<Sender>
  logger: Logger
}

/** A session that a request sends, and its secret. */
export interface SentSession {
  readonly session: BrowserSession
  readonly secret: string
}

/**
 * Returns the open sessions of a request's cookies, usually one. A browser sends its cookies to every port of a host,
 * including ports of processes on servers. So a cookie does not prove that its sender is the browser: before a session
 * is used, `areOfSeveralAccounts` and `isStolen` must be false.
 *
 * @param origin the origin of the request, as in `http://127.0.0.1:4747`
 */
export async function sentSessions(
  request: Request,
  origin: string,
  { host, sessions }: Pick<SentSessionsOptions, 'host' | 'sessions'>,
): Promise<SentSession[]> {
  const secrets = cookiesOf(request, origin, host)
  if (secrets.length === 0) return []
  const all = await sessions()
  return secrets.flatMap((secret) => {
    const session = all.find(secret)
    return session ? [{ session, secret }] : []
  })
}

/**
 * Reports whether sessions of one request belong to more than one account. A page on another port of the host may have
 * set one of the cookies, and the person would act for its account.
 */
export const areOfSeveralAccounts = (sent: readonly SentSession[]): boolean =>
  new Set(sent.map(({ session }) => session.accountId)).size > 1

/**
 * Reports whether a process on a server sends a request that has a session, or hides that it does, and logs that. The
 * sender of a closed connection is not known, such as a browser whose page was left.
 */
export async function isStolen(
  request: Request,
  { senderOf, logger }: Pick<SentSessionsOptions, 'senderOf' | 'logger'>,
): Promise<boolean> {
  const sender = await senderOf(request)
  if (sender === 'elsewhere') return false
  // The end of a connection is seen when the loop has looked at it.
  await new Promise((resolve) => setImmediate(resolve))
  if (request.signal.aborted) {
    logger.info('a connection that has closed sent the session of a browser, and was refused')
  } else if (sender === 'unknown') {
    logger.info('a program that could not be found sent the session of a browser, and was refused')
  } else logger.warn('a process on a server sent the session of a browser, and was refused')
  return true
}
