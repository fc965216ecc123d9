import { isChallenge } from '../../runtime/pkce.ts'
import { PageFailure } from '../pages/failure.ts'
import { html } from '../pages/html.ts'
import type { Client, Clients } from './clients.ts'
import type { Parameters } from './parameters.ts'
import { OAuthProblem } from './problem.ts'
import { matchesRedirect } from './redirect-uri.ts'
import { checkResources, resourceAt } from './resource.ts'

/** What a client asks a person for (RFC 6749, 4.1.1; RFC 7636, 4.3; RFC 8707, 2). */
export interface AuthorizationRequest {
  readonly client: Client
  readonly redirectUri: string
  /** Returned to the client as it came; null where none did. */
  readonly state: string | null
  /** PKCE, S256. */
  readonly challenge: string
  readonly resource: string
  /** The query in which all of this came, to ask again. */
  readonly search: string
}

/** Where the answer to a client goes. */
export type ReturnAddress = Pick<AuthorizationRequest, 'client' | 'redirectUri' | 'state'>

/**
 * Reads to whom an answer goes. The browser is sent nowhere before this is certain: everything wrong here is a page.
 *
 * @throws PageFailure
 */
export function readReturnAddress(query: Parameters, clients: Clients): ReturnAddress {
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
 * Reads the rest of what a client asks for.
 *
 * @param origin where the request came in
 * @throws OAuthProblem for what the client is told (RFC 6749, 4.1.2.1)
 */
export function readAuthorization(
  query: Parameters,
  address: ReturnAddress,
  origin: string,
): Omit<AuthorizationRequest, 'search'> {
  const repeated = query.repeated()
  if (repeated !== null) throw invalid(`The parameter ${repeated.slice(0, 50)} is there more than once.`)
  // Passed over they would be what a client relies on and berth never read (RFC 9101, 7).
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

/** Whether the client wants an answer without any page (OpenID Connect Core, 3.1.2.1). */
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
