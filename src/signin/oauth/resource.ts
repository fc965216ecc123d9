import { OAuthProblem } from './problem.ts'

/** Where the MCP endpoint is, and what tokens are for by default. */
const MCP_PATH = '/mcp'

/** Ways to name the instance as what a token is for (RFC 8707). */
const ACCEPTED_PATHS = ['', '/', MCP_PATH, `${MCP_PATH}/`]

/** What a token is for at an origin: the instance has one resource there, however it was named. */
export const resourceAt = (origin: string): string => `${origin}${MCP_PATH}`

/** The origin of a resource, as `resourceAt` made it. */
export const originOfResource = (resource: string): string => resource.slice(0, -MCP_PATH.length)

/**
 * Checks what a client says its token is for. Nothing said means the MCP endpoint.
 *
 * @param origin where the request came in
 * @throws OAuthProblem `invalid_target` for anything but this instance as it was asked (RFC 8707, 2)
 */
export function checkResources(given: readonly string[], origin: string): void {
  const accepted = ACCEPTED_PATHS.map((path) => URL.parse(`${origin}${path}`)?.href)
  for (const one of given) {
    const url = URL.parse(one)
    if (url !== null && !one.includes('#') && accepted.includes(url.href)) continue
    throw new OAuthProblem(
      'invalid_target',
      `This server issues tokens for ${resourceAt(origin)} alone. Use the address under which the client asks it.`,
    )
  }
}
