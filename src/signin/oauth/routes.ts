import { Elysia } from 'elysia'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import { refuseBadQuery } from '../../http/request-checks.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import type { ReachableSources } from '../account-resources.ts'
import type { BrowserRequests } from '../session/browser-requests.ts'
import { PAGE, pageRoute } from '../session/page-route.ts'
import type { BrowserSessions } from '../session/sessions.ts'
import { decideConsent, showConsentPage } from './authorize.ts'
import { issueTokens, registerClient, revokeToken } from './client-endpoints.ts'
import { OAuthClients } from './clients.ts'
import { Codes } from './codes.ts'
import { Consents } from './consents.ts'
import type { Grants } from './grants.ts'
import { resourceMetadata, serverMetadata } from './metadata.ts'
import { clientRoute } from './problem.ts'
import { Tokens } from './tokens.ts'

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

/** The query of the consent page is a client's: faults are reported to the client, and a resource may come twice. */
const OF_CLIENT = { checksOwnQuery: true }

/** The metadata are no page: a fault of the query is an error as the API's. */
const METADATA = { ...PAGE, beforeHandle: refuseBadQuery }

/** Serves the OAuth 2.1 authorization server: metadata, registration, consent, tokens and revocation. */
export function oauthRoutes(parts: OAuthRoutesOptions, host: HostOptions) {
  const consents = new Consents(parts.clock)
  const clients = new OAuthClients({ ...parts, pendingClients: () => consents.pendingClients() })
  const tokens = new Tokens(parts)
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
