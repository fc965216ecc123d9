import { SESSION_COOKIE_PREFIX } from '../http/session-cookie.ts'
import type { App } from './group-apps.ts'

/**
 * Returns an app that a browser that is signed in may use by its session.
 *
 * @param app returns the app, which is asked for at each request
 * @param identify finds the session's account for a request, before anything else of it is read
 */
export function withSession(
  app: () => App | Promise<App>,
  identify: (request: Request) => Promise<void>,
): App {
  const respondToSession = async (request: Request): Promise<Response> => {
    await identify(request)
    const response = await (await app()).fetch(request)
    // Browsers and proxies may store responses to requests with a cookie (RFC 9111, 3.5 is about Authorization alone).
    response.headers.set('cache-control', 'no-store')
    return response
  }
  return {
    fetch(request) {
      if (isBySession(request)) return respondToSession(request)
      const ready = app()
      return ready instanceof Promise ? ready.then((loaded) => loaded.fetch(request)) : ready.fetch(request)
    },
  }
}

/** Reports whether a request has a session of a browser as its only credential. Few requests have a cookie at all. */
const isBySession = ({ headers }: Request): boolean =>
  headers.has('cookie') &&
  !headers.has('authorization') &&
  (headers.get('cookie') ?? '').includes(SESSION_COOKIE_PREFIX)
