import type { Logger } from '../runtime/logger.ts'
import { loggedPath } from './secret-path.ts'

/** Responds to a request. */
export type Respond = (request: Request) => Response | Promise<Response>

/** Returns `respond` with a log of each response, without query and bodies, which may hold secrets. */
export const logged =
  (respond: Respond, logger: Logger): Respond =>
  async (request) => {
    const started = performance.now()
    const response = await respond(request)
    logger.debug('answered', {
      method: request.method,
      // Not by the URL class, which throws where the Host header is no host.
      path: loggedPath(/^[^/]*\/\/[^/]*([^?#]*)/.exec(request.url)?.[1] ?? ''),
      status: response.status,
      ms: Math.round(performance.now() - started),
      requestId: response.headers.get('x-request-id'),
    })
    return response
  }
