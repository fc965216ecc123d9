import { BerthError } from '../../errors.ts'
import { ACCEPTED_CODING, checkQuery } from '../../http/request-checks.ts'

/**
 * Registered error codes that berth uses (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2; RFC 9101, 7;
 * OpenID Connect Core, 3.1.2.6).
 */
type ProblemCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'invalid_target'
  | 'access_denied'
  | 'interaction_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'temporarily_unavailable'
  | 'server_error'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'

/** An error in a client's request, as OAuth reports it: a code for the program and a sentence for its developer. */
export class OAuthProblem extends Error {
  override readonly name = 'OAuthProblem'

  constructor(
    readonly code: ProblemCode,
    message: string,
    readonly status = 400,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
  }

  /** Returns the sentence in the characters that an error_description may have (RFC 6749, 5.2). */
  get description(): string {
    return this.message.replace(/"/g, "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  }
}

/** Responses to clients hold credentials and must not be stored (RFC 6749, 5.1). */
const NEVER_STORED = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** Makes a response for a client. */
export const clientResponse = (
  body: object,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response => Response.json(body, { status, headers: { ...NEVER_STORED, ...headers } })

/**
 * Wraps a handler for clients. Refuses a malformed query, though nothing is read from it; an error that the handler throws
 * becomes an OAuth error response.
 */
export const clientRoute =
  (handle: (request: Request) => Promise<Response>) =>
  async ({ request }: { request: Request }): Promise<Response> => {
    try {
      checkQuery(request.url)
      return await handle(request)
    } catch (error) {
      if (error instanceof OAuthProblem) return problemResponse(error)
      if (error instanceof BerthError && error.code !== 'internal_error') {
        const headers = error.status === 415 ? ACCEPTED_CODING : {}
        return problemResponse(new OAuthProblem('invalid_request', error.message, error.status, headers))
      }
      throw error
    }
  }

/**
 * Waits for a body that is read with a limit.
 *
 * @param what names the body, as the start of a sentence
 * @throws OAuthProblem 413 over the limit
 */
export async function withinLimit<T>(what: string, limit: number, reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof BerthError) || error.code !== 'payload_too_large') throw error
    throw new OAuthProblem('invalid_request', `${what} is over the limit of ${limit} bytes.`, error.status)
  }
}

/** Makes the response that reports an error to a client. */
export const problemResponse = ({ code, description, status, headers }: OAuthProblem): Response =>
  clientResponse({ error: code, error_description: description }, status, headers)
