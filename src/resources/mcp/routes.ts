import { type AnyElysia, Elysia } from 'elysia'
import { openApiDocument } from '../../contract/openapi/document.ts'
import { describedOperations } from '../../contract/operation.ts'
import { BerthError } from '../../errors.ts'
import { type Callers, sentToken } from '../../http/authentication.ts'
import type { HostOptions } from '../../http/host.ts'
import { originOf } from '../../http/origin.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Leaves } from '../exec/leave.ts'
import { API_DOCUMENT } from '../openapi.ts'
import type { Handle } from './callers-api.ts'
import { toolsOf } from './tool.ts'

/** Dependencies of `/mcp`. */
interface McpOptions {
  version: string
  logger: Logger
  host: HostOptions
  callers: Callers
  /** Loads the whole API, whose operations become tools. */
  whole: () => Promise<AnyElysia>
  /** Receives how requests to run commands respond. */
  leaves: Leaves
  /** Most characters of a tool's result. */
  outputLimit: number
  /** Returns a text without the credentials that commands of servers have. */
  hide: (text: string) => string
  /** Handles the request of each call. */
  handle: Handle
}

/** POST carries messages; DELETE ends a session. */
const METHODS = ['POST', 'DELETE']

/**
 * Serves `/mcp`, the API for MCP hosts. `requestEntry` has checked the Host header before. The checks here are, in
 * this order: Origin (403), credential (401), method (405), size of the body (413). The credential comes before the
 * method because hosts send a GET to find out how to get a credential.
 */
export function mcpRoutes({ host, callers, whole, ...parts }: McpOptions) {
  const endpoint = once(async () => {
    const [app, { McpEndpoint }] = await Promise.all([whole(), import('./endpoint.ts')])
    const tools = toolsOf(describedOperations(app), openApiDocument(app, API_DOCUMENT))
    return new McpEndpoint({ ...parts, tools, callers })
  })
  return new Elysia({ name: 'berth/mcp' }).all(
    '/mcp',
    async ({ request, set }): Promise<Response> => {
      const own = originOf(request, host)
      checkOrigin(request, own)
      admit(request, own, set.headers)
      if (!METHODS.includes(request.method)) {
        set.headers.allow = METHODS.join(', ')
        throw new BerthError(
          'method_not_allowed',
          `/mcp does not answer to ${request.method}, only to ${METHODS.join(', ')}: it sends nothing by itself.`,
        )
      }
      return (await endpoint()).response(request)
    },
    { parse: 'none', detail: { hide: true } },
  )

  /**
   * Admits a caller. On failure sets the header that names where to get a credential (RFC 9728, 5.1; RFC 6750, 3.1).
   *
   * @throws BerthError 401
   */
  function admit(request: Request, own: string, headers: Record<string, unknown>): void {
    try {
      callers.admit(request, 'resource')
    } catch (error) {
      const metadata = `resource_metadata="${own}/.well-known/oauth-protected-resource/mcp"`
      const sent = sentToken(request) ? 'error="invalid_token", ' : ''
      headers['www-authenticate'] = `Bearer ${sent}${metadata}`
      throw error
    }
  }
}

/**
 * Refuses requests of pages of another origin (MCP, "Transports", security warning). Programs send no Origin.
 *
 * @throws BerthError 403
 */
function checkOrigin(request: Request, own: string): void {
  const origin = request.headers.get('origin')
  if (origin === null || origin.toLowerCase() === own) return
  throw new BerthError(
    'forbidden',
    `Pages of ${JSON.stringify(origin)} may not use this endpoint, only those of ${own}. Programs send no Origin.`,
  )
}
