import { BerthError } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import { cookiesOf } from './cookie.ts'
import type { BrowserSessions } from './sessions.ts'

/** Dependencies of `socketCaller`. */
export interface SocketCallerOptions {
  host: HostOptions
  sessions: BrowserSessions
  /** Reports whether a process on a server sent a request. Such a process is not the person's browser. */
  isSentFromServer: (request: Request) => Promise<boolean>
}

/**
 * Identifies the browser that opens a WebSocket, which can send no bearer token. Every page can open one, with the
 * cookies of this host, so the page's origin has to be this instance's (RFC 6455, section 10.2).
 *
 * @returns null if the browser is not signed in
 * @throws BerthError 403 if another page opens it, a process on a server sends it, or the browser sends sessions of two
 * accounts
 */
export async function socketCaller(
  request: Request,
  { host, sessions, isSentFromServer }: SocketCallerOptions,
): Promise<Caller | null> {
  const origin = originOf(request, host)
  const live = cookiesOf(request, origin).flatMap((secret) => sessions.find(secret) ?? [])
  const [session] = live
  if (session === undefined) return null
  if (request.headers.get('origin') !== origin) throw refused('a page of another origin opens it')
  if (live.some(({ accountId }) => accountId !== session.accountId))
    throw refused('the browser sends sessions of two accounts; sign in again')
  if (await isSentFromServer(request)) throw refused('a process on a server sends it')
  const { accountId, id, keyId } = session
  return { accountId, credentialId: id, parentId: keyId ?? undefined, servers: null, projects: null }
}

const refused = (why: string): BerthError =>
  new BerthError('forbidden', `The browser's session does not count for this WebSocket: ${why}.`)
