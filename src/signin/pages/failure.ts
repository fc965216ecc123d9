import { BerthError } from '../../errors.ts'
import { type Html, html } from '../../http/pages/html.ts'
import { pageResponse } from '../../http/pages/page.ts'
import { unknownPathPage } from '../../http/pages/unknown-path.ts'
import { OAuthProblem, problemResponse } from '../oauth/problem.ts'

/** A request for a page that fails, with an explanation and a remedy for the person. */
export class PageFailure extends Error {
  override readonly name = 'PageFailure'

  /**
   * @param help what the person can do, as HTML
   */
  constructor(
    readonly status: number,
    readonly title: string,
    readonly help: Html,
  ) {
    super(title)
  }
}

/** Returns the page for an error of a page's handler; null for an unexpected error. */
export function failurePage(error: unknown): Response | null {
  if (error instanceof PageFailure) {
    const { status, title, help } = error
    return pageResponse({ status, title, body: help, isNarrow: true })
  }
  if (error instanceof BerthError && error.code === 'payload_too_large') {
    // A form always has a known length.
    return pageOf(
      error.status,
      'That was too much',
      'What was sent is larger than a form of these pages can be. Nothing was changed.',
    )
  }
  if (error instanceof BerthError && error.code !== 'internal_error') {
    return pageOf(error.status, 'That did not work', error.message)
  }
  return null
}

/** Matches paths that only programs request, with any Accept header. */
const FOR_PROGRAMS = /^\/(?:\.well-known\/|oauth\/(?!authorize)|cli\/token)/

/**
 * Returns the page for any other failure if a browser asked for one; null for programs, which get the API's error.
 */
function pageForBrowsers(
  { code, status, message }: BerthError,
  request: Request,
  path: string,
): Response | null {
  if (!/\btext\/html\b/.test(request.headers.get('accept') ?? '')) return null
  if (FOR_PROGRAMS.test(path)) return null
  return code === 'not_found' ? unknownPathPage() : pageOf(status, 'That did not work', message)
}

const pageOf = (status: number, title: string, message: string): Response =>
  pageResponse({
    status,
    title,
    body: html`<p class="notice failure">${message}</p>
<p><a href="/">Go to the start page</a></p>`,
    isNarrow: true,
  })

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
