import { redirectResponse } from '../../http/pages/page.ts'
import { checkQuery } from '../../http/request-checks.ts'
import { failurePage } from '../pages/failure.ts'

/** The options of a page's route. It reads its own body, and the OpenAPI document leaves it out. */
export const PAGE = { parse: 'none', detail: { hide: true } } as const

/** Thrown if a page needs a session and the browser is not signed in. */
export class SignInNeeded extends Error {}

/** Handles a request for a page. It may throw a `PageFailure`, a `BerthError` or a `SignInNeeded`. */
type PageHandler = (
  request: Request,
  params: Readonly<Record<string, string>>,
) => Response | Promise<Response>

/**
 * Wraps a page's handler. Refuses a query that would be read otherwise than it was sent (`checkQuery`); an error that the
 * handler throws becomes a page too.
 *
 * @param checksOwnQuery whether the handler checks the query itself
 */
export const pageRoute =
  (handle: PageHandler, { checksOwnQuery = false } = {}) =>
  async ({ request, params }: { request: Request; params: Readonly<Record<string, string>> }) => {
    try {
      if (!checksOwnQuery) checkQuery(request.url)
      return await handle(request, params)
    } catch (error) {
      if (error instanceof SignInNeeded) return signInFirst(request)
      const page = failurePage(error)
      if (page) return page
      throw error
    }
  }

/** Redirects to the sign-in, which returns to the page. A form is not sent again; its page is shown instead. */
function signInFirst(request: Request): Response {
  const { pathname, search } = new URL(request.url)
  const query =
    request.method === 'GET' || request.method === 'HEAD'
      ? // Browsers leave a backslash in a query unescaped, and `returnPath` refuses one.
        `?${new URLSearchParams({ return_to: `${pathname}${search.replaceAll('\\', '%5C')}` })}`
      : ''
  return redirectResponse(`/signin${query}`)
}
