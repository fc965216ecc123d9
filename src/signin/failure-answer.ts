import type { BerthError } from '../errors.ts'
import { OAuthProblem, problemAnswer } from './oauth/problem.ts'
import { pageForBrowsers } from './pages/failure.ts'

/** Where clients of OAuth alone come. */
const OAUTH_ENDPOINT = /^\/oauth\/(?:token|register|revoke)$/

/**
 * What a failure looks like at the addresses of signing in, where it is no plain body: for clients of OAuth as OAuth has
 * it (RFC 6749, 5.2), for people as a page.
 */
export function failureAnswer(failure: BerthError, request: Request, path: string): Response | null {
  if (!OAUTH_ENDPOINT.test(path) || failure.status < 500) return pageForBrowsers(failure, request, path)
  const code = failure.status === 503 ? 'temporarily_unavailable' : 'server_error'
  return problemAnswer(new OAuthProblem(code, failure.message, failure.status))
}
