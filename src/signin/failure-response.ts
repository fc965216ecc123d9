import type { BerthError } from '../errors.ts'
import { OAuthProblem, problemResponse } from './oauth/problem.ts'
import { pageForBrowsers } from './pages/failure.ts'

/** Paths that only OAuth clients call. */
const OAUTH_ENDPOINT = /^\/oauth\/(?:token|register|revoke)$/

/**
 * Converts a failure at an address of signing in: to an OAuth error for OAuth clients (RFC 6749, 5.2), and to a page
 * for browsers. Returns null if the plain API error fits.
 */
export function signInFailureResponse(failure: BerthError, request: Request, path: string): Response | null {
  if (!OAUTH_ENDPOINT.test(path) || failure.status < 500) return pageForBrowsers(failure, request, path)
  const code = failure.status === 503 ? 'temporarily_unavailable' : 'server_error'
  return problemResponse(new OAuthProblem(code, failure.message, failure.status))
}
