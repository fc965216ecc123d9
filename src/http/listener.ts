import { StartupError } from '../errors.ts'
import type { Connection } from '../runtime/connection.ts'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { otherLoopback } from './loopback.ts'
import type { Respond } from './request-log.ts'

/** What stands behind a WebSocket of a `HostRoutes`. */
export interface RoutedSocketData {
  opened(socket: RoutedSocket): void
  message(message: string | Buffer): void
  closed(code: number, reason: string): void
}

/** A WebSocket of a `HostRoutes`. */
export type RoutedSocket = Bun.ServerWebSocket<RoutedSocketData>

/** Responds in place of the API to what its Host header sends elsewhere. */
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
  /** The connection that a request came on, or null where it is gone. */
  connectionOf(request: Request): Connection | null
  /** Closes the connection of a request that gets no response, some 4 seconds later: Bun has no other call for it. */
  expire(request: Request): void
  /** Asks these first from the next request on; null for nobody any more. */
  route(routes: HostRoutes | null): void
  /** Takes no new connection; resolves when the open requests have ended. */
  drain(): Promise<void>
  /** Closes whatever is still open. */
  close(): Promise<void>
}

/** How often another port is tried where the system's choice is taken on the other loopback address. */
const ATTEMPTS = 20

/**
 * Listens for HTTP/1.1, on the other loopback address too where `host` is one: a command on a server could listen
 * there otherwise, and be sent the keys of callers who write "localhost".
 *
 * @throws StartupError where an address cannot be had
 */
export function listen(host: string, port: number, respond: Respond): Listener {
  for (let attempt = 1; ; attempt += 1) {
    const main = serve(host, port, respond)
    const companion = besides(host, main.port, respond)
    if (companion !== 'taken') return listenerOf(companion === null ? [main] : [main, companion], respond)
    void main.server.stop(true)
    if (port !== 0 || attempt === ATTEMPTS) throw taken(otherLoopback(host) ?? host, main.port)
  }
}

/** One address that is listened on. */
interface Listening {
  readonly port: number
  readonly server: Bun.Server<undefined>
  readonly options: Omit<Bun.Serve.Options<undefined>, 'fetch'>
}

function listenerOf(all: readonly [Listening, ...Listening[]], respond: Respond): Listener {
  const each = async (call: (server: Bun.Server<undefined>) => Promise<void>): Promise<void> => {
    await Promise.all(all.map(({ server }) => call(server)))
  }
  const connectionOf = (request: Request): Connection | null => {
    for (const { server, port } of all) {
      const peer = server.requestIP(request)
      if (peer) return { remoteAddress: peer.address, remotePort: peer.port, localPort: port }
    }
    return null
  }
  return {
    port: all[0].port,
    route(routes) {
      const fetch = routes === null ? respond : routed(routes, respond)
      // WebSockets are known from here on only: without any, a start does not pay for them.
      const handlers = routes === null ? { fetch } : { fetch, websocket: routes.websocket }
      for (const { server, options } of all) server.reload({ ...options, ...handlers } as never)
    },
    addressOf: (request) => connectionOf(request)?.remoteAddress ?? null,
    connectionOf,
    expire(request) {
      const { server } = all.find(({ server }) => server.requestIP(request) !== null) ?? all[0]
      server.timeout(request, 1)
    },
    drain: () => each((server) => server.stop()),
    close: () => each((server) => server.stop(true)),
  }
}

/** Listens on the other loopback address; null where there is none, as without IPv6. */
function besides(host: string, port: number, respond: Respond): Listening | 'taken' | null {
  const other = otherLoopback(host)
  if (other === null) return null
  try {
    return start(other, port, respond)
  } catch (error) {
    return codeOf(error) === 'EADDRINUSE' ? 'taken' : null
  }
}

function serve(host: string, port: number, respond: Respond): Listening {
  try {
    return start(host, port, respond)
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') throw taken(host, port)
    const cause = messageOf(error)
    throw new StartupError(
      `Cannot listen on ${host}:${port}: ${cause}. Choose another address with --host and --port.`,
    )
  }
}

function start(hostname: string, port: number, respond: Respond): Listening {
  const options = {
    hostname,
    port,
    // A command may be silent for long: its response must not be cut off.
    idleTimeout: 0,
    // Berth refuses large bodies itself, in its own words and after the credential.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    // Without this a second berth could share the port, and requests would fall to either.
    reusePort: false,
    development: false,
  } as const
  const server = Bun.serve({ ...options, fetch: respond })
  return { port: server.port ?? port, server, options }
}

const taken = (host: string, port: number): StartupError =>
  new StartupError(
    `Port ${port} on ${host} is taken by another program. Choose another with --port, or --port 0 for any free one.`,
  )

const routed =
  (routes: HostRoutes, respond: Respond) => (request: Request, server: Bun.Server<RoutedSocketData>) =>
    routes.answer(request, server) ?? respond(request)
