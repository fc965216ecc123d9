/** What the cookies of all instances begin with; behind it stands the port. */
export const SESSION_COOKIE_PREFIX = 'berth_session_'

const NAME = new RegExp(`^${SESSION_COOKIE_PREFIX}\\d+$`)

/**
 * Nothing stands before the name but what browsers leave out: they send a cookie without a name as its value alone,
 * which may look like one with a name.
 */
const SETS = new RegExp(`^[\\s=]*${SESSION_COOKIE_PREFIX}\\d+\\s*(?:[=;]|$)`)

/** The name in a piece of a Cookie header. */
const nameOf = (pair: string): string => (pair.split('=', 1)[0] ?? '').trim()

/**
 * A Cookie header without the sessions of berth's own pages, all else byte for byte; null where nothing is left.
 *
 * Browsers keep one set of cookies for all ports of a host (RFC 6265, 8.5), so that whatever answers on another port is
 * sent the cookie of the pages, and could act as who is signed in there.
 */
export function withoutSession(cookies: string): string | null {
  if (!cookies.includes(SESSION_COOKIE_PREFIX)) return cookies
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !NAME.test(nameOf(pair)))
  if (kept.length === pairs.length) return cookies
  const rest = kept.join(';').replace(/^[ \t]+/, '')
  return rest === '' ? null : rest
}

/** Whether a Set-Cookie header would put something in the place of a session, or take one away. */
export const setsSession = (setCookie: string): boolean => SETS.test(setCookie)
