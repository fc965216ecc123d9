import type { Logger } from '../runtime/logger.ts'

/** Responds to a request. */
export type Respond = (request: Request) => Response | Promise<Response>

/** Wraps `respond` with a log of each response. Query and bodies are left out, because they may contain secrets. */
export const logged =
  (respond: Respond, logger: Logger): Respond =>
  async (request) => {
    const started = performance.now()
    const response = await respond(request)
    logger.debug('answered', {
      method: request.method,
      // The URL class would throw for an invalid Host header.
      path: pathForLogs(/^[^/]*\/\/[^/]*([^?#]*)/.exec(request.url)?.[1] ?? ''),
      status: response.status,
      ms: Math.round(performance.now() - started),
      requestId: response.headers.get('x-request-id'),
    })
    return response
  }

/** The path of a link that signs a browser in, up to its secret. */
export const LINK_PATH = '/signin/link/'

/** Returns a path for logs. The secret of a sign-in link is removed. */
export function pathForLogs(path: string): string {
  return path.toLowerCase().includes(LINK_PATH) ? `${LINK_PATH}…` : path
}
