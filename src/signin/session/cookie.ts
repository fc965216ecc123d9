import { SESSION_COOKIE_PREFIX } from '../../http/session-cookie.ts'
import { SESSION_MS } from './sessions.ts'

/**
 * The name of the cookie on an origin. Browsers keep the cookies of all ports of a host together, so that two
 * instances on one machine need two names. What the gateway forwards to carries none of them (`withoutSession`).
 */
export function cookieName(origin: string): string {
  const { port, protocol } = new URL(origin)
  return `${SESSION_COOKIE_PREFIX}${port || (protocol === 'https:' ? '443' : '80')}`
}

/**
 * The secrets that a browser's cookies hold, usually one. Another port's page can lay a cookie of the same name before
 * ours, for one path: that one does not hide ours.
 */
export function cookiesOf(request: Request, origin: string): string[] {
  const name = cookieName(origin)
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1))
}

/** The header that gives a browser its session. Lax: a link from elsewhere finds it signed in, a form does not. */
export const cookieFor = (origin: string, secret: string): string => write(origin, secret, SESSION_MS / 1000)

/** The header that takes it away. */
export const cookieEnding = (origin: string): string => write(origin, '', 0)

const write = (origin: string, value: string, maxAge: number): string =>
  new Bun.Cookie(cookieName(origin), value, {
    path: '/',
    httpOnly: true,
    sameSite: 'lax',
    maxAge,
    secure: origin.startsWith('https:'),
  }).toString()
