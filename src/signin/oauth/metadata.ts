import { AUTH_METHODS, GRANT_TYPES } from './client-metadata.ts'
import { resourceAt } from './resource.ts'

/** Describes the authorization server. The origin is also the issuer (RFC 8414, 2). */
export const serverMetadata = (origin: string) => ({
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
export const SCOPE = 'offline_access'

/**
 * Describes the protected resource and its issuer (RFC 9728, 2).
 *
 * @param isMcp describes the MCP endpoint
 */
export const resourceMetadata = (origin: string, isMcp: boolean) => ({
  resource: isMcp ? resourceAt(origin) : origin,
  authorization_servers: [origin],
  bearer_methods_supported: ['header'],
  resource_name: 'berth',
  resource_documentation: `${origin}/docs`,
})
