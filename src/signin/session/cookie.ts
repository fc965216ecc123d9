import { type HostOptions, mayBeProjects } from '../../http/host.ts'
import { SESSION_COOKIE_PREFIX } from '../../http/session-cookie.ts'
import { SESSION_MS } from './sessions.ts'

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
export function cookiesOf(request: Request, origin: string, host: Pick<HostOptions, 'publicHost'>): string[] {
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
