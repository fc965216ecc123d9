import type { Viewer } from '../../contract/reference/page.ts'
import { BrowserRequests } from '../session/browser-requests.ts'
import type { SentSessionsOptions } from '../session/sent-sessions.ts'
import { signedInHeader } from './header.ts'

/**
 * Returns a function that finds who is signed in with the browser that asks for a page that everybody may read. It
 * returns null for nobody, and for a session that is not to be trusted.
 *
 * @param path the path of the page, or of the one that it is below
 * @param needsAdmin whether the API takes only sessions that have the instance's rights
 */
export function pageViewer(
  options: SentSessionsOptions,
  path: string,
  needsAdmin: boolean,
): (request: Request) => Promise<Viewer | null> {
  const browserRequests = new BrowserRequests(options)
  return async (request) => {
    if (!request.headers.has('cookie')) return null
    const browser = await browserRequests.identify(request).catch(() => null)
    if (!browser?.session) return null
    const { session, csrf } = browser
    return { header: signedInHeader(csrf, path), csrf: needsAdmin && !session.isAdmin ? null : csrf }
  }
}
