/** The prefix of session cookies. The port follows. */
export const SESSION_COOKIE_PREFIX = 'berth_session_'

const NAME = new RegExp(`^${SESSION_COOKIE_PREFIX}\\d+$`)

/**
 * Matches as loosely as browsers parse: they skip certain characters before the name, and send a cookie without a
 * name as its value, which may look like a name with a value.
 */
const SETS = new RegExp(`^[\\s=]*${SESSION_COOKIE_PREFIX}\\d+\\s*(?:[=;]|$)`)

/** Returns the name in a pair of a Cookie header. */
const nameOf = (pair: string): string => (pair.split('=', 1)[0] ?? '').trim()

/**
 * Removes the session cookies of berth's own pages from a Cookie header and leaves the rest unchanged. Returns null
 * if nothing remains.
 *
 * Browsers share cookies between all ports of a host (RFC 6265, 8.5). A service on another port would receive the
 * session and could act for the person who is signed in.
 */
export function withoutSession(cookies: string): string | null {
  if (!cookies.includes(SESSION_COOKIE_PREFIX)) return cookies
  const pairs = cookies.split(';')
  const kept = pairs.filter((pair) => !NAME.test(nameOf(pair)))
  if (kept.length === pairs.length) return cookies
  const rest = kept.join(';').replace(/^[ \t]+/, '')
  return rest === '' ? null : rest
}

/** Reports whether a Set-Cookie header would set or delete a session cookie. */
export const setsSession = (setCookie: string): boolean => SETS.test(setCookie)

/** Returns the values of all session cookies in a Cookie header, of whichever instance. */
export const sessionsIn = (cookies: string): string[] =>
  cookies.includes(SESSION_COOKIE_PREFIX)
    ? cookies
        .split(';')
        .flatMap((pair) => (NAME.test(nameOf(pair)) ? [pair.slice(pair.indexOf('=') + 1).trim()] : []))
    : []
