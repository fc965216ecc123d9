import type { Sender } from '../../compute/compute.ts'
import { BerthError } from '../../errors.ts'
import type { Identity } from '../../http/authentication.ts'
import { type HostOptions, hostGuard, mayBeProjects } from '../../http/host.ts'
import { isFromOwnPage, originOf } from '../../http/origin.ts'
import { SESSION_COOKIE_PREFIX } from '../../http/session-cookie.ts'
import { wantsSocket } from '../../http/web-socket.ts'
import type { Logger } from '../../runtime/logger.ts'
import { isSameText } from '../../runtime/secret.ts'
import { csrfToken } from '../pages/parts.ts'
import { type BrowserSession, type BrowserSessions, SESSION_MS } from './sessions.ts'

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

/**
 * Returns the name of the cookie for an origin. Browsers share the cookies of a host between its ports, so two
 * instances on a machine need two names. The gateway forwards neither (`withoutSession`).
 */
function cookieName(origin: string): string {
  const { port, protocol } = new URL(origin)
  return `${SESSION_COOKIE_PREFIX}${port || (protocol === 'https:' ? '443' : '80')}`
}

/**
 * Returns the secrets in a browser's cookies, usually one. A page on another port can set a cookie of the same name
 * for one path. It does not hide berth's own. At a name that a project may have there are none.
 */
function cookiesOf(request: Request, origin: string, host: Pick<HostOptions, 'publicHost'>): string[] {
  if (mayBeProjects(origin, host)) return []
  const name = cookieName(origin)
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1))
}

/**
 * Returns the header that gives a browser its session. With SameSite=Lax a link from another site finds the browser
 * signed in, and a form does not.
 */
export const cookieFor = (origin: string, secret: string): string =>
  formatCookie(origin, secret, SESSION_MS / 1000)

/** Returns the header that removes the cookie. */
export const expiredCookie = (origin: string): string => formatCookie(origin, '', 0)

const formatCookie = (origin: string, value: string, maxAge: number): string =>
  new Bun.Cookie(cookieName(origin), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    maxAge,
    secure: origin.startsWith('https:'),
  }).toString()

/** The header of a request to the API that carries the CSRF token of the browser's session. */
const CSRF_HEADER = 'x-berth-csrf'

/**
 * Identifies the browser that sends a request to the API or to the control API, by its session. The caller is the
 * session's account, with its whole scope.
 *
 * A browser adds the cookie to requests of any page, and to those of other ports of the host. So a request also needs
 * the session's CSRF token, which only pages of this instance have. A WebSocket can have no header of its own, so its
 * origin has to be this instance's (RFC 6455, section 10.2).
 *
 * @returns null if the request has no session cookie of this instance
 * @throws BerthError 401 without the token, or if the session has ended; 403 for a wrong token, if another page or a
 * process on a server sends it, or if the browser sends sessions of two accounts
 */
export async function sessionIdentity(
  request: Request,
  options: SentSessionsOptions,
): Promise<Identity | null> {
  const { headers } = request
  hostGuard(options.host)(headers.get('host'))
  const origin = originOf(request, options.host)
  if (cookiesOf(request, origin, options.host).length === 0) return null
  const isHandshake = request.method === 'GET' && wantsSocket(request)
  const token = isHandshake ? null : tokenOf(headers)
  if (!isFromOwnPage(request, origin, { needsOrigin: token === null }))
    throw refused(`a page of another origin sends it. Only pages of ${origin} may use it`)
  const sent = await sentSessions(request, origin, options)
  const [first] = sent
  if (first === undefined) throw ended()
  if (areOfSeveralAccounts(sent))
    throw refused(
      'the browser sends sessions of two accounts. Remove the cookies of this address, then sign in again',
    )
  const own = token === null ? first : sent.find(({ secret }) => isSameText(token, csrfToken(secret)))
  if (own === undefined)
    throw refused(
      `the token in the header "${CSRF_HEADER}" belongs to another session. Reload the page that sends it`,
    )
  if (await isStolen(request, options))
    throw refused('a process on a server sends it, which has no right to use it')
  return identityOf(own.session, await options.sessions())
}

function identityOf({ accountId, id, keyId, isAdmin }: BrowserSession, sessions: BrowserSessions): Identity {
  return {
    caller: {
      accountId,
      credentialId: id,
      parentId: keyId ?? undefined,
      servers: null,
      projects: null,
      isAdmin,
    },
    recheck() {
      if (!sessions.isOpen(id)) throw ended()
    },
    whenExpired: (listener) => sessions.whenExpired(id, listener),
  }
}

/** @throws BerthError 401 without a token */
function tokenOf(headers: Headers): string {
  const token = headers.get(CSRF_HEADER)
  if (token !== null) return token
  throw new BerthError(
    'missing_or_invalid_api_key',
    `Send an API key in the header "Authorization: Bearer sk_live_…". The session of a browser counts only with its token in the header "${CSRF_HEADER}", which berth's own pages send.`,
  )
}

const ended = (): BerthError =>
  new BerthError(
    'missing_or_invalid_api_key',
    'The session of this browser has ended. Sign in again: run "berth open" ("berth open --print" for a browser elsewhere), or go to /signin.',
  )

const refused = (why: string): BerthError =>
  new BerthError('forbidden', `The session of the browser does not count for this request: ${why}.`)
