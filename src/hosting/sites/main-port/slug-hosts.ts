import type { HostRoutes, RoutedSocket, RoutedSocketData } from '../../../http/listener.ts'
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

  respond(request: Request, server: Bun.Server<RoutedSocketData>): Promise<Response | undefined> | null {
    const slug = slugOf(request.url)
    if (slug === null) return null
    const state = this.#gateway.bySlug(slug)?.state
    return state === undefined ? null : this.#bySite(request, server, state)
  }

  /** Handlers of the main port's WebSockets. */
  readonly websocket: Bun.WebSocketHandler<RoutedSocketData> = {
    // Larger messages close the socket with 1009. So does a client that does not read.
    maxPayloadLength: 128 * 1024 * 1024,
    backpressureLimit: 128 * 1024 * 1024,
    closeOnBackpressureLimit: true,
    idleTimeout: 0,
    open: (socket) => socket.data.opened(socket),
    message: (socket: RoutedSocket, message) => socket.data.message(message),
    close: (socket, code, reason) => socket.data.closed(code, reason),
  }

  #bySite(
    request: Request,
    server: Bun.Server<RoutedSocketData>,
    state: SiteState,
  ): Promise<Response | undefined> {
    const address = server.requestIP(request)?.address ?? ''
    if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
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
