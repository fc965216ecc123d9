import { failurePage } from '../pages/failure.ts'
import { redirectAnswer } from '../pages/page.ts'

/** A page's route reads its body itself, and stands in no document. */
export const PAGE = { parse: 'none', detail: { hide: true } } as const

/** Nobody is signed in where somebody has to be. */
export class SignInNeeded extends Error {}

/** A page's handler, which may throw a `PageFailure`, a `BerthError` or ask for a sign-in. */
export type PageHandler = (
  request: Request,
  params: Readonly<Record<string, string>>,
) => Response | Promise<Response>

/** Makes a route's handler of a page's: what it throws becomes a page too. */
export const pageRoute =
  (answer: PageHandler) =>
  async ({ request, params }: { request: Request; params: Readonly<Record<string, string>> }) => {
    try {
      return await answer(request, params)
    } catch (error) {
      if (error instanceof SignInNeeded) return signInFirst(request)
      const page = failurePage(error)
      if (page) return page
      throw error
    }
  }

/** After the sign-in the browser comes back, to the page where a form was sent from none. */
function signInFirst(request: Request): Response {
  const { pathname, search } = new URL(request.url)
  const query =
    request.method === 'GET'
      ? // Browsers leave a backslash in a query as it is, which no path to return to may have.
        `?${new URLSearchParams({ return_to: `${pathname}${search.replaceAll('\\', '%5C')}` })}`
      : ''
  return redirectAnswer(`/signin${query}`)
}
