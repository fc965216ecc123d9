import type { HostRoutes } from '../../../http/listener.ts'
import { type SocketListener, wantsSocket } from '../../../http/web-socket.ts'
import type { Gateway } from '../gateway.ts'
import type { SiteState } from '../site-state.ts'
import { respondTo } from './request-client.ts'
import { bridgeWebSocket } from './web-socket.ts'

/** Index at which the authority of a URL begins. All URLs begin with `http://`. */
const AUTHORITY = 'http://'.length
const DIGIT_9 = 57

/** Forwards requests of the main port for `SLUG.localhost` to the site of that slug. */
export class SlugHosts implements HostRoutes {
  readonly #gateway: Gateway

  constructor(gateway: Gateway) {
    this.#gateway = gateway
  }

  respond(request: Request, server: Bun.Server<SocketListener>): Promise<Response | undefined> | null {
    const slug = slugOf(request.url)
    if (slug === null) return null
    const state = this.#gateway.bySlug(slug)?.state
    return state === undefined ? null : this.#bySite(request, server, state)
  }

  #bySite(
    request: Request,
    server: Bun.Server<SocketListener>,
    state: SiteState,
  ): Promise<Response | undefined> {
    const address = server.requestIP(request)?.address ?? ''
    if (!wantsSocket(request)) {
      return respondTo(request, address, state, { upgrade: false })
    }
    return bridgeWebSocket(request, server, address, state)
  }
}

/**
 * Returns the slug of a URL whose host is `SLUG.localhost`, else null. A request of the API, whose host begins with a
 * digit, costs one comparison.
 */
export function slugOf(url: string): string | null {
  if (url.charCodeAt(AUTHORITY) <= DIGIT_9) return null
  const end = url.indexOf('/', AUTHORITY)
  return /^([a-z0-9-]+)\.localhost\.?(?::\d*)?$/.exec(url.slice(AUTHORITY, end).toLowerCase())?.[1] ?? null
}
