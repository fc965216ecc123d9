import { OAuthProblem } from './problem.ts'

/** The path of the MCP endpoint, and the default resource of tokens. */
const MCP_PATH = '/mcp'

/** Paths that name the instance as the resource of a token (RFC 8707). */
const ACCEPTED_PATHS = ['', '/', MCP_PATH, `${MCP_PATH}/`]

/** Returns the resource of tokens at an origin. An instance has a single resource with several paths. */
export const resourceAt = (origin: string): string => `${origin}${MCP_PATH}`

/** Returns the origin of a resource that `resourceAt` made. */
export const originOfResource = (resource: string): string => resource.slice(0, -MCP_PATH.length)

/**
 * Checks the requested resources. None means the MCP endpoint.
 *
 * @param origin the origin at which the request arrived
 * @throws OAuthProblem `invalid_target` for anything but this instance at this origin (RFC 8707, section 2)
 */
export function checkResources(given: readonly string[], origin: string): void {
  const accepted = ACCEPTED_PATHS.map((path) => URL.parse(`${origin}${path}`)?.href)
  for (const one of given) {
    const url = URL.parse(one)
    if (url !== null && !one.includes('#') && accepted.includes(url.href)) continue
    throw new OAuthProblem(
      'invalid_target',
      `This server issues tokens only for ${resourceAt(origin)}. Use the address to which the client sends its requests.`,
    )
  }
}
