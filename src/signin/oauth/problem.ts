import { BerthError } from '../../errors.ts'

/**
 * Codes of the registry that berth answers with (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2; RFC 9101, 7;
 * OpenID Connect Core, 3.1.2.6).
 */
export type ProblemCode =
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

/** A client's request that cannot be met, told as OAuth does: a code for the program and a sentence for its maker. */
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

  /** The sentence in the characters that an error_description may have (RFC 6749, 5.2). */
  get description(): string {
    return this.message.replace(/"/g, "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  }
}

/** Answers to clients are never stored: they hold credentials (RFC 6749, 5.1). */
const NEVER_STORED = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** An answer for a client. */
export const clientAnswer = (
  body: object,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response => Response.json(body, { status, headers: { ...NEVER_STORED, ...headers } })

/** Makes a route's handler of one for clients: what it throws becomes an answer as OAuth has them. */
export const clientRoute =
  (answer: (request: Request) => Promise<Response>) =>
  async ({ request }: { request: Request }): Promise<Response> => {
    try {
      return await answer(request)
    } catch (error) {
      if (error instanceof OAuthProblem) return problemAnswer(error)
      if (error instanceof BerthError && error.code !== 'internal_error') {
        return problemAnswer(new OAuthProblem('invalid_request', error.message, error.status))
      }
      throw error
    }
  }

/**
 * Waits for a body that is read in at most `limit` bytes.
 *
 * @param what the body is, as a sentence begins
 * @throws OAuthProblem 413 over the limit: nothing that a client sends here can come in parts
 */
export async function withinLimit<T>(what: string, limit: number, reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof BerthError) || error.code !== 'payload_too_large') throw error
    throw new OAuthProblem('invalid_request', `${what} is over the limit of ${limit} bytes.`, error.status)
  }
}

/** The answer that tells a client of a problem. */
export const problemAnswer = ({ code, description, status, headers }: OAuthProblem): Response =>
  clientAnswer({ error: code, error_description: description }, status, headers)
