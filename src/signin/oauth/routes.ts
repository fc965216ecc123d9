import { Elysia } from 'elysia'
import { readJsonBody } from '../../http/body.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import { refuseBadQuery } from '../../http/request-checks.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import type { ReachableSources } from '../account-resources.ts'
import { type BrowserRequests, PAGE, pageRoute } from '../session/browser-requests.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { Consents, decideConsent, showConsentPage } from './authorize.ts'
import { AUTH_METHODS, GRANT_TYPES, readClientMetadata } from './client-metadata.ts'
import { OAuthClients } from './clients.ts'
import { Codes } from './codes.ts'
import type { Grants } from './grants.ts'
import { credentialsOf, type Parameters, readClientForm } from './parameters.ts'
import { clientResponse, clientRoute, OAuthProblem, withinLimit } from './problem.ts'
import { resourceAt } from './resource.ts'
import { type IssuedTokens, OAuthTokens } from './tokens.ts'

/** Dependencies of the authorization server. */
interface OAuthRoutesOptions extends ReachableSources {
  queries: Queries
  clock: Clock
  ids: Ids
  grants: Grants
  browserRequests: BrowserRequests
  sessions: () => Promise<BrowserSessions>
}

const WELL_KNOWN = '/.well-known/oauth'

/** The query of the consent page is a client's: errors are reported to the client, and a resource may be repeated. */
const OF_CLIENT = { checksOwnQuery: true }

/** The metadata are no page: a fault of the query is an error as the API's. */
const METADATA = { ...PAGE, beforeHandle: refuseBadQuery }

/** Serves the OAuth 2.1 authorization server: metadata, registration, consent, tokens and revocation. */
export function oauthRoutes(parts: OAuthRoutesOptions, host: HostOptions) {
  const consents = new Consents(parts.clock)
  const clients = new OAuthClients({ ...parts, pendingClients: () => consents.pendingClients() })
  const tokens = new OAuthTokens(parts)
  const codes = new Codes({ ...parts, tokens })
  const all = { ...parts, consents, clients, tokens, codes }
  const origin = (request: Request): string => originOf(request, host)
  const server = ({ request }: { request: Request }) => Response.json(serverMetadata(origin(request)))
  return new Elysia({ name: 'berth/oauth' })
    .get(`${WELL_KNOWN}-authorization-server`, server, METADATA)
    .get(`${WELL_KNOWN}-authorization-server/mcp`, server, METADATA)
    .get(
      `${WELL_KNOWN}-protected-resource`,
      ({ request }) => Response.json(resourceMetadata(origin(request), false)),
      METADATA,
    )
    .get(
      `${WELL_KNOWN}-protected-resource/mcp`,
      ({ request }) => Response.json(resourceMetadata(origin(request), true)),
      METADATA,
    )
    .post(
      '/oauth/register',
      clientRoute((request) => registerClient(request, all)),
      PAGE,
    )
    .get(
      '/oauth/authorize',
      pageRoute((request) => showConsentPage(request, all), OF_CLIENT),
      PAGE,
    )
    .post(
      '/oauth/authorize',
      pageRoute((request) => decideConsent(request, all), OF_CLIENT),
      PAGE,
    )
    .post(
      '/oauth/token',
      clientRoute((request) => issueTokens(request, origin(request), all)),
      PAGE,
    )
    .post(
      '/oauth/revoke',
      clientRoute((request) => revokeToken(request, all)),
      PAGE,
    )
}

/** Largest size of a registration, in bytes. @bound page */
const REGISTRATION_LIMIT = 64 * 1024

/** Dependencies of the endpoints that clients call. */
interface ClientEndpointsOptions {
  clients: OAuthClients
  codes: Codes
  tokens: OAuthTokens
  sessions: () => Promise<BrowserSessions>
}

/**
 * Registers a client (RFC 7591, 3).
 *
 * @throws OAuthProblem, BerthError
 */
async function registerClient(request: Request, { clients }: ClientEndpointsOptions): Promise<Response> {
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
async function issueTokens(
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
async function revokeToken(request: Request, { clients, tokens }: ClientEndpointsOptions): Promise<Response> {
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

/** Describes the authorization server. The origin is also the issuer (RFC 8414, 2). */
const serverMetadata = (origin: string) => ({
  issuer: origin,
  authorization_endpoint: `${origin}/oauth/authorize`,
  token_endpoint: `${origin}/oauth/token`,
  registration_endpoint: `${origin}/oauth/register`,
  revocation_endpoint: `${origin}/oauth/revoke`,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: GRANT_TYPES,
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: AUTH_METHODS,
  revocation_endpoint_auth_methods_supported: AUTH_METHODS,
  // The person who grants access chooses the resources. Scopes have no effect.
  scopes_supported: [SCOPE],
  authorization_response_iss_parameter_supported: true,
  request_parameter_supported: false,
  // If left out it would mean true (OpenID Connect Discovery, 3).
  request_uri_parameter_supported: false,
  service_documentation: `${origin}/docs`,
})

/** The only scope: every client gets refresh tokens. */
const SCOPE = 'offline_access'

/**
 * Describes the protected resource and its issuer (RFC 9728, 2).
 *
 * @param isMcp describes the MCP endpoint
 */
const resourceMetadata = (origin: string, isMcp: boolean) => ({
  resource: isMcp ? resourceAt(origin) : origin,
  authorization_servers: [origin],
  bearer_methods_supported: ['header'],
  resource_name: 'berth',
  resource_documentation: `${origin}/docs`,
})
