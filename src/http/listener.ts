import { StartupError } from '../errors.ts'
import type { Answer } from './request-log.ts'

/** What stands behind a WebSocket of a `HostRoutes`. */
export interface RoutedSocketData {
  opened(socket: RoutedSocket): void
  message(message: string | Buffer): void
  closed(code: number, reason: string): void
}

/** A WebSocket of a `HostRoutes`. */
export type RoutedSocket = Bun.ServerWebSocket<RoutedSocketData>

/** Answers in place of the API what its Host header sends elsewhere. */
export interface HostRoutes {
  /** @returns null for what is not meant for it; resolves to undefined where a WebSocket was made of the request */
  answer(request: Request, server: Bun.Server<RoutedSocketData>): Promise<Response | undefined> | null
  readonly websocket: Bun.WebSocketHandler<RoutedSocketData>
}

/** A listening HTTP server. */
export interface Listener {
  /** The port that it got. */
  readonly port: number
  /** The address that a request comes from, or null where its connection is gone. */
  addressOf(request: Request): string | null
  /** Asks these first from the next request on. */
  route(routes: HostRoutes): void
  /** Takes no new connection; resolves when the open requests have ended. */
  drain(): Promise<void>
  /** Closes whatever is still open. */
  close(): Promise<void>
}

/**
 * Listens for HTTP/1.1.
 *
 * @throws StartupError where the address cannot be had
 */
export function listen(host: string, port: number, answer: Answer): Listener {
  try {
    const options = {
      hostname: host,
      port,
      // A command may be silent for long: its answer must not be cut off.
      idleTimeout: 0,
      // Berth refuses large bodies itself, in its own words and after the credential.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Without this a second berth could share the port, and requests would fall to either.
      reusePort: false,
      development: false,
    } as const
    const server = Bun.serve({ ...options, fetch: answer })
    return {
      route(routes) {
        const first = routed(routes, answer)
        // WebSockets are known from here on only: without any, a start does not pay for them.
        server.reload({ ...options, fetch: first, websocket: routes.websocket } as never)
      },
      port: server.port ?? port,
      addressOf: (request) => server.requestIP(request)?.address ?? null,
      drain: () => server.stop(),
      close: () => server.stop(true),
    }
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code === 'EADDRINUSE') {
      throw new StartupError(
        `Port ${port} on ${host} is taken by another program. Choose another with --port, or --port 0 for any free one.`,
      )
    }
    const cause = error instanceof Error ? error.message : String(error)
    throw new StartupError(
      `Cannot listen on ${host}:${port}: ${cause}. Choose another address with --host and --port.`,
    )
  }
}

const routed =
  (routes: HostRoutes, answer: Answer) => (request: Request, server: Bun.Server<RoutedSocketData>) =>
    routes.answer(request, server) ?? answer(request)
