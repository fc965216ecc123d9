import type { ServerNetwork } from '../compute/local/network/server-network.ts'
import type { Config } from '../config/config.ts'
import type { SiteRoutes } from '../hosting/hosting.ts'
import { ownHost } from '../http/host.ts'
import { type Listener, listen } from '../http/listener.ts'
import type { Respond } from '../http/request-log.ts'
import type { SocketListener, SocketUpgrader } from '../http/web-socket.ts'
import type { Connection } from '../runtime/connection.ts'

/**
 * The port of the API and of sites by name. Everything that needs it gets it before it listens, so the parts of a start
 * can begin in the order that is quickest. Requests wait until `open`.
 */
export class MainPort implements SocketUpgrader {
  readonly #config: Pick<Config, 'host' | 'port'>
  readonly #opened = Promise.withResolvers<Respond>()
  #respond: Respond = async (request) => (await this.#opened.promise)(request)
  #listener: Listener | null = null
  #routes: SiteRoutes | null = null

  constructor(config: Pick<Config, 'host' | 'port'>) {
    this.#config = config
  }

  /** The address of the API, without a slash at the end; null before `listen`. */
  get url(): string | null {
    return this.#listener && urlOf(this.#config.host, this.#listener.port)
  }

  /** @throws StartupError if an address cannot be bound */
  listen(): void {
    const { host, port } = this.#config
    this.#listener = listen(host, port, (request) => this.#respond(request))
  }

  /** Lets requests in, also those that have waited. A further call replaces the function that responds. */
  open(respond: Respond): void {
    this.#respond = respond
    this.#opened.resolve(respond)
  }

  /** Passes requests to sites first from now on; null ends that. */
  route(routes: SiteRoutes | null): void {
    this.#routes = routes
    this.#listener?.route(routes?.hosts ?? null)
  }

  /** Returns the address of the API for commands of servers. @param network whose network these have */
  urlForServers(network: 'own' | 'shared'): string | null {
    // Inside a network of its own berth is on loopback, whatever address it listens on outside.
    if (network === 'own') return this.#listener && urlOf('127.0.0.1', this.#listener.port)
    return this.url
  }

  /** Gives a server's own network the API, its MCP endpoint and projects by name, at the same addresses as outside. */
  async provide(network: ServerNetwork): Promise<void> {
    const { refuseSite } = await import('../hosting/sites/no-site.ts')
    const listener = this.#listener
    if (listener) network.forward(listener.port, { unix: listener.listenForServers() })
    network.acceptAtProjectPorts(
      (port, socket) => this.#routes?.accept(port, socket) ?? refuseSite(port, socket),
    )
  }

  acceptSockets(): boolean {
    return this.#listener?.acceptSockets() ?? false
  }

  upgrade(request: Request, listener: SocketListener, headers: Record<string, string>): boolean {
    return this.#listener?.upgrade(request, listener, headers) ?? false
  }

  /** As `expire` of `Listener`. */
  expire(request: Request): void {
    this.#listener?.expire(request)
  }

  /** As `connectionOf` of `Listener`. */
  connectionOf(request: Request): Connection | null {
    return this.#listener?.connectionOf(request) ?? null
  }

  /** As `addressOf` of `Listener`. */
  addressOf(request: Request): string | null {
    return this.#listener?.addressOf(request) ?? null
  }

  /** Stops accepting connections. Resolves when the open requests have ended. */
  async drain(): Promise<void> {
    await this.#listener?.drain()
  }

  /** Closes all open connections. */
  async close(): Promise<void> {
    await this.#listener?.close()
  }
}

const urlOf = (host: string, port: number): string => `http://${ownHost(host)}:${port}`
