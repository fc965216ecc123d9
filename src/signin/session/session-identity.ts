import { BerthError } from '../../errors.ts'
import type { Identity } from '../../http/authentication.ts'
import { hostGuard } from '../../http/host.ts'
import { isFromOwnPage, originOf } from '../../http/origin.ts'
import { wantsSocket } from '../../http/web-socket.ts'
import { isSameText } from '../../runtime/secret.ts'
import { csrfToken } from '../pages/header.ts'
import { cookiesOf } from './cookie.ts'
import { areOfSeveralAccounts, isStolen, type SentSessionsOptions, sentSessions } from './sent-sessions.ts'
import type { BrowserSession, BrowserSessions } from './sessions.ts'

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
