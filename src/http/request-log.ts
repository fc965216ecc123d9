import type { Logger } from '../runtime/logger.ts'
import { loggedPath } from './secret-path.ts'

/** Answers a request. */
export type Answer = (request: Request) => Response | Promise<Response>

/** Logs each answer for whoever looks for a fault: never the query or a body, in which secrets may stand. */
export const logged =
  (answer: Answer, logger: Logger): Answer =>
  async (request) => {
    const started = performance.now()
    const response = await answer(request)
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
