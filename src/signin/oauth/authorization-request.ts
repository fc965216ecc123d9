import { html } from '../../http/pages/html.ts'
import { isChallenge } from '../../runtime/pkce.ts'
import { PageFailure } from '../pages/failure.ts'
import type { OAuthClient, OAuthClients } from './clients.ts'
import type { Parameters } from './parameters.ts'
import { OAuthProblem } from './problem.ts'
import { matchesRedirect } from './redirect-uri.ts'
import { checkResources, resourceAt } from './resource.ts'

/** A client's request for a person's consent (RFC 6749, 4.1.1; RFC 7636, 4.3; RFC 8707, 2). */
export interface AuthorizationRequest {
  readonly client: OAuthClient
  readonly redirectUri: string
  /** Returned to the client unchanged; null if it sent none. */
  readonly state: string | null
  /** The PKCE challenge, S256. */
  readonly challenge: string
  readonly resource: string
  /** The query that carried the request, to repeat it. */
  readonly search: string
}

/** The destination of a response to a client. */
export type ReturnAddress = Pick<AuthorizationRequest, 'client' | 'redirectUri' | 'state'>

/**
 * Reads the destination of the response. Any error here is shown as a page, because the browser must not be
 * redirected before the address is verified.
 *
 * @throws PageFailure if the client or its redirect URI is invalid
 */
export function readReturnAddress(query: Parameters, clients: OAuthClients): ReturnAddress {
  const id = query.get('client_id')
  const redirectUri = query.get('redirect_uri')
  if (query.isRepeated('client_id') || query.isRepeated('redirect_uri')) {
    throw unusable('It names itself or the address for the answer more than once.')
  }
  if (id === null) throw unusable('It does not say which client asks: client_id is missing.')
  const client = clients.find(id)
  if (!client) {
    throw unusable(
      'The program is not registered here, or not any more: berth was reset or is another instance, its access was ended, or nobody let it in within a day. ' +
        'Remove berth from it, or clear what it keeps of this sign-in, then connect it again.',
    )
  }
  const registered = client.metadata.redirect_uris
  const only = registered.length === 1 ? registered[0] : undefined
  const returnsTo = redirectUri ?? only
  if (returnsTo === undefined)
    throw unusable('It does not say where the answer goes: redirect_uri is missing.')
  if (!registered.some((uri) => matchesRedirect(returnsTo, uri))) {
    throw unusable('The address for the answer is none of those that the client registered.')
  }
  return { client, redirectUri: returnsTo, state: query.isRepeated('state') ? null : query.get('state') }
}

/**
 * Reads the rest of a client's request.
 *
 * @param origin the origin at which the request arrived
 * @throws OAuthProblem for an error to report to the client (RFC 6749, 4.1.2.1)
 */
export function readAuthorization(
  query: Parameters,
  address: ReturnAddress,
  origin: string,
): Omit<AuthorizationRequest, 'search'> {
  query.check('query')
  // The client would rely on these parameters, so ignoring them is unsafe (RFC 9101, 7).
  for (const name of ['request', 'request_uri'] as const) {
    if (query.get(name) === null) continue
    throw new OAuthProblem(
      `${name}_not_supported`,
      `${name} is not supported. Send each parameter by itself.`,
    )
  }
  const type = query.get('response_type')
  if (type === null) throw invalid('response_type is missing; it must be code.')
  if (type !== 'code') throw new OAuthProblem('unsupported_response_type', 'response_type must be code.')
  const mode = query.get('response_mode')
  if (mode !== null && mode !== 'query') throw invalid('response_mode must be query.')
  const challenge = query.get('code_challenge')
  if (challenge === null) throw invalid('code_challenge is missing: PKCE is required.')
  if (query.get('code_challenge_method') !== 'S256') throw invalid('code_challenge_method must be S256.')
  if (!isChallenge(challenge)) {
    throw invalid('code_challenge must be the SHA-256 of the verifier in base64url, 43 characters.')
  }
  checkResources(query.getAll('resource'), origin)
  if (isSilent(query)) {
    throw new OAuthProblem(
      'interaction_required',
      'A person is asked each time. Leave prompt=none out and open a browser.',
    )
  }
  return { ...address, challenge, resource: resourceAt(origin) }
}

/** Reports whether the client wants a response without any page (OpenID Connect Core, 3.1.2.1). */
export const isSilent = (query: Parameters): boolean =>
  (query.get('prompt') ?? '').split(' ').includes('none')

const invalid = (message: string): OAuthProblem => new OAuthProblem('invalid_request', message)

const unusable = (what: string): PageFailure =>
  new PageFailure(
    400,
    'This request for access cannot be answered',
    html`<p class="notice failure">${what}</p>
<p>Nothing was granted, and nothing was sent anywhere. Go back to the program that sent you here.</p>`,
  )
