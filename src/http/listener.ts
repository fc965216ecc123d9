/**
 * Where requests come in. The listener hands each to the instance; `request-entry.ts` gives it an id and checks the Host header.
 * `authentication.ts` finds the caller of a request and checks what the caller may reach; it is handed the functions that know keys
 * (src/resources/keys), tokens and sessions (src/signin). `body.ts` and `multipart.ts` read bodies. `sse.ts`, `byte-stream.ts` and
 * `web-socket.ts` send responses that last. `pages/`, `docs/` and `dashboard/` serve pages for people.
 *
 * This room knows no noun of the API: rules about servers, keys and the like are in src/resources.
 */

import { StartupError } from '../errors.ts'
import { type Connection, newSocketForServers } from '../runtime/connection.ts'
import { codeOf, messageOf } from '../runtime/error-info.ts'
import { asLoopback, otherLoopback } from './host.ts'
import type { Respond } from './request-log.ts'
import { SOCKET_HANDLERS, type SocketListener, type SocketUpgrader } from './web-socket.ts'

/** Another program listens on the port. */
export class AddressTaken extends StartupError {
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

/** Number of attempts with another port if the system's choice is taken on the other loopback address. @bound owner */
const MAX_ATTEMPTS = 20

/** The options that all listeners have in common. */
const COMMON = {
  // A command may be silent for long without its response being cut off.
  idleTimeout: 0,
  // Berth refuses large bodies itself, after it has checked the credential.
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  development: false,
  websocket: SOCKET_HANDLERS,
} as const

type Server = Bun.Server<SocketListener>

type ServerFetch = (request: Request, server: Server) => Response | undefined | Promise<Response | undefined>

/** A bound address. */
interface BoundListener {
  readonly hostname: string
  readonly port: number
  readonly server: Server
}

/** The bound addresses of a host. */
interface BoundListeners {
  readonly main: BoundListener
  /** That of the other loopback address; null if there is none. */
  readonly companion: BoundListener | null
}

/**
 * A server of HTTP/1.1. If its host is a loopback address, it also listens on the other one. Otherwise a command on a
 * server could listen there and receive the keys of clients that use "localhost". Requests wait until `open`.
 */
export class Listener implements SocketUpgrader {
  /** The port that it listens on. */
  readonly port: number
  readonly #bound: BoundListeners
  /** The server for requests of servers with their own network, and its unix socket. */
  #forServers: { readonly server: Server; readonly unix: string } | null = null
  readonly #fromServers = new WeakSet<Request>()
  #routes: HostRoutes | null = null
  readonly #opened = Promise.withResolvers<Respond>()
  #respond: Respond = async (request) => (await this.#opened.promise)(request)

  /** @throws StartupError if an address cannot be bound */
  constructor(host: string, port: number) {
    this.#bound = bind(host, port, this.#fetch)
    this.port = this.#bound.main.port
  }

  /** Handles a request: the first function that one passes. */
  readonly #fetch: ServerFetch = (request, server) =>
    this.#routes?.respond(request, server) ?? this.#respond(request)

  /** Lets requests in, also those that have waited. */
  open(respond: Respond): void {
    this.#respond = respond
    this.#opened.resolve(respond)
  }

  /** Passes further requests to these routes first; null ends that. */
  route(routes: HostRoutes | null): void {
    this.#routes = routes
  }

  upgrade(request: Request, data: SocketListener, headers: Record<string, string>): boolean {
    return this.#serverOf(request).upgrade(request, { data, headers })
  }

  /**
   * Listens for requests of servers with their own network, which come by connections that are passed on to it.
   * `connectionOf` is null for them. May be called again.
   *
   * @returns the unix socket (unix(7)) to pass connections on to
   */
  listenForServers(): string {
    if (this.#forServers === null) {
      const unix = newSocketForServers()
      const fetch: ServerFetch = (request, server) => {
        this.#fromServers.add(request)
        return this.#fetch(request, server)
      }
      // Bun's types have no idle timeout for unix sockets.
      this.#forServers = { unix, server: Bun.serve<SocketListener>({ ...COMMON, unix, fetch } as never) }
    }
    return this.#forServers.unix
  }

  /** Returns the address of a request's client, or null if its connection is closed. */
  addressOf(request: Request): string | null {
    // A server is on this machine.
    if (this.#fromServers.has(request)) return '127.0.0.1'
    return this.connectionOf(request)?.remoteAddress ?? null
  }

  /** Returns the connection of a request, or null if it is closed. */
  connectionOf(request: Request): Connection | null {
    for (const bound of [this.#bound.main, this.#bound.companion]) {
      const peer = bound?.server.requestIP(request)
      if (!bound || !peer) continue
      const { address: remoteAddress, port: remotePort } = peer
      return {
        remoteAddress,
        remotePort,
        localLoopback: asLoopback(bound.hostname),
        localPort: bound.port,
      }
    }
    return null
  }

  /**
   * Closes the connection of a request that gets no response, about 4 seconds later. Bun has no other call for this.
   */
  expire(request: Request): void {
    this.#serverOf(request).timeout(request, 1)
  }

  /** Stops accepting connections. Resolves when the open requests have ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()))
  }

  /** Closes all open connections. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop(true)))
  }

  get #servers(): Server[] {
    const all = [this.#bound.main, this.#bound.companion, this.#forServers]
    return all.flatMap((one) => (one === null ? [] : [one.server]))
  }

  /** The server that a request has come to. */
  #serverOf(request: Request): Server {
    if (this.#forServers !== null && this.#fromServers.has(request)) return this.#forServers.server
    const { main, companion } = this.#bound
    return companion === null || main.server.requestIP(request) !== null ? main.server : companion.server
  }
}

/** Binds a host's address, and the other loopback address if it is one. */
function bind(host: string, port: number, fetch: ServerFetch): BoundListeners {
  for (let attempt = 1; ; attempt += 1) {
    const main = serve(host, port, fetch)
    const companion = listenOnCompanion(host, main.port, fetch)
    if (companion !== 'taken') return { main, companion }
    void main.server.stop(true)
    if (port !== 0 || attempt === MAX_ATTEMPTS) throw new AddressTaken(otherLoopback(host) ?? host, main.port)
  }
}

/** Listens on the other loopback address; null if there is none, as without IPv6. */
function listenOnCompanion(host: string, port: number, fetch: ServerFetch): BoundListener | 'taken' | null {
  const other = otherLoopback(host)
  if (other === null) return null
  try {
    return start(other, port, fetch)
  } catch (error) {
    return codeOf(error) === 'EADDRINUSE' ? 'taken' : null
  }
}

function serve(host: string, port: number, fetch: ServerFetch): BoundListener {
  try {
    return start(host, port, fetch)
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') throw new AddressTaken(host, port)
    const cause = messageOf(error)
    throw new StartupError(
      `Cannot listen on ${host}:${port}: ${cause}. Choose another address with --host and --port.`,
    )
  }
}

function start(hostname: string, port: number, fetch: ServerFetch): BoundListener {
  // Without `reusePort` a second berth could share the port and take some of the requests.
  const server = Bun.serve<SocketListener>({ ...COMMON, hostname, port, reusePort: false, fetch })
  return { hostname, port: server.port ?? port, server }
}
