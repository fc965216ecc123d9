import { StartupError } from '../errors.ts'
import { type Connection, newSocketForServers } from '../runtime/connection.ts'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { asLoopback, otherLoopback } from './loopback.ts'
import type { Respond } from './request-log.ts'
import { SOCKET_HANDLERS, type SocketListener, type SocketUpgrader } from './web-socket.ts'

/** Another program listens on the port. */
export class PortTaken extends StartupError {
  constructor(
    readonly host: string,
    readonly port: number,
    readonly by = 'another program',
    readonly remedy = '',
    choice = 'Choose another with --port, or --port 0 for any free one.',
  ) {
    super(`Port ${port} on ${host} is taken by ${by}. ${remedy}${choice}`)
  }
}

/** Handles requests whose Host header belongs to something other than the API. */
export interface HostRoutes {
  /**
   * @returns null if the request is for the API; resolves to undefined if the request became a WebSocket
   */
  respond(request: Request, server: Bun.Server<SocketListener>): Promise<Response | undefined> | null
}

/** A listening HTTP server. */
export interface Listener extends SocketUpgrader {
  /** The port that it listens on. */
  readonly port: number
  /** Returns the address of a request's client, or null if its connection is closed. */
  addressOf(request: Request): string | null
  /** Returns the connection of a request, or null if it is closed. */
  connectionOf(request: Request): Connection | null
  /**
   * Closes the connection of a request that gets no response, about 4 seconds later. Bun has no other call for this.
   */
  expire(request: Request): void
  /**
   * Listens for requests of servers with their own network, which come by connections that are passed on to it.
   * `connectionOf` is null for them. May be called again.
   *
   * @returns the unix socket (unix(7)) to pass connections on to, an abstract one
   */
  listenForServers(): string
  /** Passes further requests to these routes first; null ends that. */
  route(routes: HostRoutes | null): void
  /** Stops accepting connections. Resolves when the open requests have ended. */
  drain(): Promise<void>
  /** Closes all open connections. */
  close(): Promise<void>
}

/** Number of attempts with another port if the system's choice is taken on the other loopback address. */
const MAX_ATTEMPTS = 20

/**
 * Listens for HTTP/1.1. If `host` is a loopback address, it also listens on the other one. Otherwise a command on a
 * server could listen there and receive the keys of clients that use "localhost".
 *
 * @throws StartupError if an address cannot be bound
 */
export function listen(host: string, port: number, respond: Respond): Listener {
  for (let attempt = 1; ; attempt += 1) {
    const main = serve(host, port, respond)
    const companion = listenOnCompanion(host, main.port, respond)
    if (companion !== 'taken') return listenerOf(companion === null ? [main] : [main, companion], respond)
    void main.server.stop(true)
    if (port !== 0 || attempt === MAX_ATTEMPTS) throw new PortTaken(otherLoopback(host) ?? host, main.port)
  }
}

/** A bound address. */
interface BoundListener {
  readonly port: number
  readonly server: Bun.Server<undefined>
  readonly options: { readonly hostname: string; readonly port: number }
}

type RoutedFetch = (
  request: Request,
  server: Bun.Server<SocketListener>,
) => Response | undefined | Promise<Response | undefined>

/** The listener for servers with their own network. */
interface ServersListener {
  readonly server: Bun.Server<undefined>
  readonly options: { readonly unix: string }
}

/** The options that all listeners have in common. */
const LIMITS = {
  // A command may be silent for long without its response being cut off.
  idleTimeout: 0,
  // Berth refuses large bodies itself, after it has checked the credential.
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  development: false,
} as const

function listenerOf(all: readonly [BoundListener, ...BoundListener[]], respond: Respond): Listener {
  const fromServers = new WeakSet<Request>()
  let forServers: ServersListener | null = null
  let routes: HostRoutes | null = null
  let hasSockets = false
  const each = async (call: (server: Bun.Server<undefined>) => Promise<void>): Promise<void> => {
    const servers = [...all, ...(forServers === null ? [] : [forServers])]
    await Promise.all(servers.map(({ server }) => call(server)))
  }
  // WebSocket handlers are set only when they are needed, because they would slow the start.
  const handlers = (): { fetch: RoutedFetch; websocket?: typeof SOCKET_HANDLERS } => ({
    fetch: routes === null ? respond : routed(routes, respond),
    ...(hasSockets ? { websocket: SOCKET_HANDLERS } : {}),
  })
  const handlersForServers = (): ReturnType<typeof handlers> => {
    const { fetch, ...others } = handlers()
    const marked = (request: Request, server: Bun.Server<SocketListener>) => {
      fromServers.add(request)
      return fetch(request, server)
    }
    return { ...others, fetch: marked }
  }
  const connectionOf = (request: Request): Connection | null => {
    for (const { server, port, options } of all) {
      const peer = server.requestIP(request)
      if (!peer) continue
      const { address: remoteAddress, port: remotePort } = peer
      return { remoteAddress, remotePort, localLoopback: asLoopback(options.hostname), localPort: port }
    }
    return null
  }
  // Bun's types tie the data of WebSockets to handlers, which here may be absent at first: `never` fits both.
  const reload = (): void => {
    for (const { server, options } of all) server.reload({ ...options, ...handlers() } as never)
    if (forServers !== null)
      forServers.server.reload({ ...forServers.options, ...handlersForServers() } as never)
  }
  /** The server that a request has come to. */
  const serverOf = (request: Request): Bun.Server<undefined> => {
    const own = fromServers.has(request) ? forServers : null
    return (own ?? all.find(({ server }) => server.requestIP(request) !== null) ?? all[0]).server
  }
  return {
    port: all[0].port,
    route(next) {
      routes = next
      hasSockets ||= next !== null
      reload()
    },
    acceptSockets() {
      if (hasSockets) return true
      hasSockets = true
      reload()
      return false
    },
    upgrade: (request, data, headers) =>
      (serverOf(request) as Bun.Server<unknown> as Bun.Server<SocketListener>).upgrade(request, {
        data,
        headers,
      }),
    listenForServers() {
      if (forServers === null) {
        const options = { ...LIMITS, unix: newSocketForServers() }
        const server = Bun.serve({ ...options, ...handlersForServers() } as never) as Bun.Server<undefined>
        forServers = { server, options }
      }
      return forServers.options.unix
    },
    // A server is on this machine.
    addressOf: (request) =>
      fromServers.has(request) ? '127.0.0.1' : (connectionOf(request)?.remoteAddress ?? null),
    connectionOf,
    expire: (request) => serverOf(request).timeout(request, 1),
    drain: () => each((server) => server.stop()),
    close: () => each((server) => server.stop(true)),
  }
}

/** Listens on the other loopback address; null if there is none, as without IPv6. */
function listenOnCompanion(host: string, port: number, respond: Respond): BoundListener | 'taken' | null {
  const other = otherLoopback(host)
  if (other === null) return null
  try {
    return start(other, port, respond)
  } catch (error) {
    return codeOf(error) === 'EADDRINUSE' ? 'taken' : null
  }
}

function serve(host: string, port: number, respond: Respond): BoundListener {
  try {
    return start(host, port, respond)
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') throw new PortTaken(host, port)
    const cause = messageOf(error)
    throw new StartupError(
      `Cannot listen on ${host}:${port}: ${cause}. Choose another address with --host and --port.`,
    )
  }
}

function start(hostname: string, port: number, respond: Respond): BoundListener {
  const options = {
    ...LIMITS,
    hostname,
    port,
    // Otherwise a second berth could share the port and take some of the requests.
    reusePort: false,
  } as const
  const server = Bun.serve({ ...options, fetch: respond })
  return { port: server.port ?? port, server, options }
}

const routed =
  (routes: HostRoutes, respond: Respond) => (request: Request, server: Bun.Server<SocketListener>) =>
    routes.respond(request, server) ?? respond(request)
