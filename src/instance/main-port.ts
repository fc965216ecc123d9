import type { AnsweringPorts, ProvidedNetwork } from '../compute/compute.ts'
import type { Config } from '../config/config.ts'
import type { SiteRoutes } from '../hosting/hosting.ts'
import { ownHost } from '../http/host.ts'
import { Listener } from '../http/listener.ts'

/** The port of the API and of sites by name. */
export class MainPort {
  readonly listener: Listener
  readonly #host: string
  #routes: SiteRoutes | null = null
  #unfollow = (): void => {}
  readonly #portListeners = new Set<() => void>()
  /** The ports of sites, whichever routes there are. */
  readonly #ports: AnsweringPorts = {
    now: () => this.#routes?.ports.now() ?? [],
    onChange: (listener) => {
      this.#portListeners.add(listener)
      return () => void this.#portListeners.delete(listener)
    },
  }

  /** @throws StartupError if an address cannot be bound */
  constructor({ host, port }: Pick<Config, 'host' | 'port'>) {
    this.#host = host
    this.listener = new Listener(host, port)
  }

  /** The address of the API, without a slash at the end. */
  get url(): string {
    return this.#urlAt(this.#host)
  }

  /** Passes requests to sites first from now on; null ends that. */
  route(routes: SiteRoutes | null): void {
    this.#unfollow()
    this.#routes = routes
    const changed = (): void => {
      for (const listener of this.#portListeners) listener()
    }
    this.#unfollow = routes?.ports.onChange(changed) ?? (() => {})
    changed()
    this.listener.route(routes?.hosts ?? null)
  }

  /** Returns the address of the API for commands of servers. @param network whose network these have */
  urlForServers(network: 'own' | 'shared'): string {
    // Inside a network of its own berth is on loopback, whatever address it listens on outside.
    return this.#urlAt(network === 'own' ? '127.0.0.1' : this.#host)
  }

  /** Gives a server's own network the API, its MCP endpoint and projects by name, at the same addresses as outside. */
  async provide(network: ProvidedNetwork): Promise<void> {
    const { refuseSite } = await import('../hosting/sites/no-site.ts')
    network.forward(this.listener.port, { unix: this.listener.listenForServers() })
    network.acceptAtProjectPorts(
      (port, socket) => this.#routes?.accept(port, socket) ?? refuseSite(port, socket),
      this.#ports,
    )
  }

  #urlAt(host: string): string {
    return `http://${ownHost(host)}:${this.listener.port}`
  }
}
