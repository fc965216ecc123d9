import { readJsonBody } from '../../http/body.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { credentialsOf } from './client-credentials.ts'
import { readClientMetadata } from './client-metadata.ts'
import type { OAuthClients } from './clients.ts'
import type { Codes } from './codes.ts'
import { SCOPE } from './metadata.ts'
import { type Parameters, readClientForm } from './parameters.ts'
import { clientResponse, OAuthProblem, withinLimit } from './problem.ts'
import type { IssuedTokens, Tokens } from './tokens.ts'

/** Largest size of a registration, in bytes. */
const REGISTRATION_LIMIT = 64 * 1024

/** Dependencies of the endpoints that clients call. */
interface ClientEndpointsOptions {
  clients: OAuthClients
  codes: Codes
  tokens: Tokens
  sessions: () => Promise<BrowserSessions>
}

/**
 * Registers a client (RFC 7591, 3).
 *
 * @throws OAuthProblem, BerthError
 */
export async function registerClient(
  request: Request,
  { clients }: ClientEndpointsOptions,
): Promise<Response> {
  const sent = await withinLimit(
    'The registration',
    REGISTRATION_LIMIT,
    readJsonBody(request, REGISTRATION_LIMIT),
  )
  if (!sent) throw new OAuthProblem('invalid_client_metadata', 'Send what the client says of itself as JSON.')
  const { id, metadata, secret, createdAt } = clients.register(readClientMetadata(sent))
  const shown = secret === null ? {} : { client_secret: secret, client_secret_expires_at: 0 }
  const response = {
    client_id: id,
    client_id_issued_at: Math.floor(createdAt / 1_000),
    ...shown,
    ...metadata,
  }
  return clientResponse(response, 201)
}

/**
 * Issues tokens for a code or a refresh token (RFC 6749, 3.2).
 *
 * @throws OAuthProblem, BerthError
 */
export async function issueTokens(
  request: Request,
  origin: string,
  { clients, codes, tokens, sessions }: ClientEndpointsOptions,
): Promise<Response> {
  const form = await readClientForm(request)
  const client = clients.authenticate(credentialsOf(request, form))
  const grantType = requireParameter(form, 'grant_type')
  const resources = form.getAll('resource')
  if (grantType === 'authorization_code') {
    const code = requireParameter(form, 'code')
    const verifier = form.get('code_verifier')
    const redirectUri = form.get('redirect_uri')
    const all = await sessions()
    const isSignedIn = (id: string): boolean => all.isOpen(id)
    const shown = { code, verifier, redirectUri, resources }
    return tokenResponse(codes.exchange({ ...shown, client, origin, isSignedIn }))
  }
  if (grantType === 'refresh_token') {
    const refreshToken = requireParameter(form, 'refresh_token')
    return tokenResponse(tokens.refresh({ client, refreshToken, resources, origin }))
  }
  throw new OAuthProblem('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.')
}

/**
 * Revokes the grant of a client's token. An unknown token needs no revocation (RFC 7009, 2.2).
 *
 * @throws OAuthProblem
 */
export async function revokeToken(
  request: Request,
  { clients, tokens }: ClientEndpointsOptions,
): Promise<Response> {
  const form = await readClientForm(request)
  const client = clients.authenticate(credentialsOf(request, form))
  tokens.revoke(client, requireParameter(form, 'token'))
  return new Response(null, { status: 200, headers: { 'cache-control': 'no-store' } })
}

const tokenResponse = ({ accessToken, refreshToken, expiresIn }: IssuedTokens): Response =>
  clientResponse({
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: expiresIn,
    refresh_token: refreshToken,
    // Always included, since it may differ from the requested scope (RFC 6749, 5.1).
    scope: SCOPE,
  })

function requireParameter(form: Parameters, name: string): string {
  const value = form.get(name)
  if (value !== null) return value
  throw new OAuthProblem('invalid_request', `The parameter ${name} is missing.`)
}
