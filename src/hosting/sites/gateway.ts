import type { AnsweringPorts } from '../../compute/compute.ts'
import type { PortRange } from '../../config/config.ts'
import { isBlockedByBrowsers, siteHostGuard } from '../../http/host.ts'
import type { Logger } from '../../runtime/logger.ts'
import { processes } from '../../system/processes.ts'
import { ClientConnection, type ClientSocket } from './client-connection.ts'
import {
  addressesOf,
  holdPort,
  type ListenFailure,
  listenFailure,
  PortClaims,
  type PortListener,
} from './ports.ts'
import { type GatewayContext, type GatewayTimes, SiteState, TIMES } from './site-state.ts'
import {
  GatewayError,
  type ReservedPort,
  type ServerPort,
  type Site,
  type SiteHost,
  type SiteOptions,
  type Upstream,
} from './upstream.ts'

/** Options of a gateway. */
interface GatewayOptions {
  /** Address that sites listen on. */
  readonly host: string
  /** Ports for sites. */
  readonly ports: PortRange
  /** Another name that the Host header may carry. */
  readonly publicHost: string | null
  readonly logger: Logger
  /** Overrides of the default time limits. */
  readonly times?: Partial<GatewayTimes>
  /** Connections of clients, at most; by default what the limit of open files allows. */
  readonly maxClients?: number
}

/** The share of berth's descriptors that connections of clients take at most. Each may take another to an app. */
const SHARE = 3 / 8

/** The sites of this berth. Each has its own port, and its slug on the main port. */
export class Gateway implements SiteHost {
  readonly #options: GatewayOptions
  readonly #context: GatewayContext
  readonly #sites = new Set<PortSite>()
  readonly #bySlug = new Map<string, PortSite>()
  /** The listeners of reserved ports. */
  readonly #held = new Map<number, PortListener[]>()
  readonly #byPort = new Map<number, PortSite>()
  readonly #portListeners = new Set<() => void>()
  readonly #claims = new PortClaims()
  readonly #maxClients: number
  /** When idle connections were closed to make room. */
  #relievedAt = 0
  /** Whether a connection was refused since there was room last. */
  #hasRefused = false

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#maxClients =
      options.maxClients ?? Math.floor((processes.maxOpenFiles() ?? Number.POSITIVE_INFINITY) * SHARE)
    this.#context = {
      times: { ...TIMES, ...options.times },
      logger: options.logger,
      admits: () => this.#admits(),
      guard: siteHostGuard({ bound: options.host, publicHost: options.publicHost }),
    }
  }

  /** Keeps other berths of this machine from choosing these ports, as far as they have not. */
  claim(ports: readonly number[]): void {
    for (const port of ports) this.#claims.take(port)
  }

  /**
   * See `SiteHost.reserve`. Reserves the lowest port that is neither taken nor in use by another program, nor by a
   * project of another berth, and that browsers open. Other berths do not choose it as long as it is taken.
   */
  async reserve(isTaken: (port: number) => boolean): Promise<ReservedPort> {
    const { host, ports } = this.#options
    this.#claims.keepOnly((port) => isTaken(port) || this.#held.has(port) || this.#byPort.has(port))
    let denied: string | null = null
    for (let port = ports.first; port <= ports.last; port += 1) {
      if (isTaken(port) || isBlockedByBrowsers(port) || !this.#claims.take(port)) continue
      const held = holdPort(host, port)
      if (Array.isArray(held)) {
        this.#held.set(port, held)
        return { port, release: () => this.#release(port, held) }
      }
      // Only low ports are denied. Otherwise the next port fails for the same reason.
      if (held.code === 'EACCES') denied ??= held.reason
      else if (!held.isTaken) throw new GatewayError(held.reason)
    }
    if (denied !== null) throw new GatewayError(denied)
    throw new GatewayError(
      `No port from ${ports.first} to ${ports.last} that browsers open is free for the project. Delete a project, or start berth with a wider range: --project-ports FIRST-LAST.`,
    )
  }

  /** See `SiteHost.open`. */
  async open(options: SiteOptions): Promise<Site> {
    const held = this.#held.get(options.port) ?? []
    this.#held.delete(options.port)
    const site = new PortSite(this.#options.host, options, this.#context, held, () => this.#forget(site))
    this.#sites.add(site)
    if (site.slug !== null) this.#bySlug.set(site.slug, site)
    this.#byPort.set(site.port, site)
    site.listen()
    this.#portsChanged()
    return site
  }

  /** The ports of open sites. */
  get ports(): AnsweringPorts {
    return {
      now: () => [...this.#byPort.keys()],
      onChange: (listener) => {
        this.#portListeners.add(listener)
        return () => void this.#portListeners.delete(listener)
      },
    }
  }

  /** Returns the open site that has `SLUG.localhost`, or null. No site has it if it is the instance's own name. */
  bySlug(slug: string): PortSite | null {
    if (`${slug}.localhost` === this.#options.publicHost) return null
    return this.#bySlug.get(slug) ?? null
  }

  /**
   * Begins to serve a connection that was opened elsewhere for the site of a port.
   *
   * @returns what takes the connection's bytes; null if there is no such site, or it is closed
   */
  accept(port: number, socket: ClientSocket): ClientConnection | null {
    const site = this.#byPort.get(port)
    return site === undefined ? null : new ClientConnection(socket, site.state)
  }

  /** Closes all sites. */
  async close(): Promise<void> {
    for (const [port, listeners] of this.#held) this.#release(port, listeners)
    this.#claims.keepOnly(() => false)
    await Promise.all([...this.#sites].map((site) => site.close()))
  }

  #release(port: number, listeners: readonly PortListener[]): void {
    // A site has them, or another reservation has the port.
    if (this.#held.get(port) !== listeners) return
    this.#held.delete(port)
    for (const listener of listeners) listener.stop(true)
  }

  #forget(site: PortSite): void {
    this.#sites.delete(site)
    if (site.slug !== null && this.#bySlug.get(site.slug) === site) this.#bySlug.delete(site.slug)
    if (this.#byPort.get(site.port) === site) this.#byPort.delete(site.port)
    this.#portsChanged()
  }

  #portsChanged(): void {
    for (const listener of this.#portListeners) listener()
  }

  /**
   * Bounds the connections of clients, so that berth keeps descriptors for servers, files and the API. See
   * `GatewayContext.admits`.
   */
  #admits(): boolean {
    const { logger, times } = this.#context
    const clients = (): number => this.#sites.values().reduce((sum, { state }) => sum + state.clients.size, 0)
    const now = performance.now()
    // With many connections, each look for idle ones takes time.
    if (clients() >= this.#maxClients && now - this.#relievedAt > times.crowdedMs / 4) {
      this.#relievedAt = now
      for (const { state } of this.#sites) for (const client of state.clients) client.expire(times.crowdedMs)
    }
    const open = clients()
    if (open < this.#maxClients) {
      this.#hasRefused = false
      return true
    }
    if (!this.#hasRefused) {
      this.#hasRefused = true
      logger.warn(
        `connections to projects are refused: ${open} are open, all that the limit of open files allows. Close some, or start berth again after "ulimit -n" with a greater number (with systemd: LimitNOFILE).`,
      )
    }
    return false
  }
}

/** Listens on the port of one site and holds the state of its requests, those of the main port included. */
export class PortSite implements Site {
  readonly state: SiteState
  readonly port: number
  readonly slug: string | null
  readonly #listeners: PortListener[] = []
  /** Addresses without a listener yet. */
  #unbound: string[]
  #retryTimer: Timer | null = null
  /** Why it does not listen; null if it does. */
  #failure: ListenFailure | null = null
  #closed = false

  /**
   * @param host address to listen on; a loopback address implies the other one, 127.0.0.1 or ::1
   * @param held listeners of `holdPort` on the port, which become the site's
   */
  constructor(
    private readonly host: string,
    private readonly options: SiteOptions,
    private readonly context: GatewayContext,
    held: readonly PortListener[],
    private readonly onClose: () => void,
  ) {
    this.port = options.port
    this.slug = options.slug
    this.state = new SiteState(context, options, `127.0.0.1:${options.port}`)
    for (const listener of held) listener.reload({ socket: handlersOf(this.state) })
    this.#listeners.push(...held)
    // An address that could not be held is one that this machine does not have.
    this.#unbound = held.length > 0 ? [] : addressesOf(host)
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`
  }

  /** Listens on the port. If that fails, as where another program has it, retries until it succeeds. */
  listen(): void {
    if (!this.#tryListen()) this.#listenLater()
  }

  setUpstream(upstream: Upstream): void {
    if (!this.#closed) this.state.setUpstream(upstream)
  }

  drained(port: ServerPort): Promise<void> {
    return this.state.drained(port)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.onClose()
    clearTimeout(this.#retryTimer ?? undefined)
    this.state.close()
    for (const listener of this.#listeners) listener.stop(true)
  }

  #listenLater(): void {
    this.#retryTimer = setTimeout(() => {
      if (!this.#tryListen()) return this.#listenLater()
      this.context.logger.info(`port ${this.port} of a project is open now, the project answers there`)
      this.#noteFailure(null)
    }, this.context.times.bindMs)
    this.#retryTimer.unref()
  }

  /** Reports why the site does not listen, where that is another reason than before; null if it does. */
  #noteFailure(failure: ListenFailure | null): void {
    const before = this.#failure
    this.#failure = failure
    if (before?.code === failure?.code && (before === null) === (failure === null)) return
    if ((before?.isTaken ?? false) !== (failure?.isTaken ?? false))
      this.options.onPortTaken?.(failure?.isTaken ?? false)
    if (failure === null) return
    const retry = 'The project answers there as soon as berth can open it.'
    this.context.logger.warn(`a project cannot be reached at its port. ${failure.reason} ${retry}`)
    if (!failure.isTaken) this.options.onListenFailure?.(`${failure.reason} ${retry}`)
  }

  /**
   * @returns whether the site listens on all of its addresses
   */
  #tryListen(): boolean {
    this.#unbound = this.#unbound.filter((hostname) => !this.#tryAddress(hostname))
    return this.#unbound.length === 0
  }

  /**
   * @returns whether the address needs no further try
   */
  #tryAddress(hostname: string): boolean {
    try {
      const socket = handlersOf(this.state)
      const listener = Bun.listen<ClientConnection | null>({ hostname, port: this.port, data: null, socket })
      this.#listeners.push(listener)
      return true
    } catch (error) {
      const failure = listenFailure(error, hostname, this.port)
      // Without IPv6 there is no other loopback address.
      if (hostname !== this.host && failure.lacksAddress) return true
      this.#noteFailure(failure)
      return false
    }
  }
}

const handlersOf = (state: SiteState): Bun.SocketHandler<ClientConnection | null> => ({
  // Bun has set TCP_NODELAY.
  open(socket) {
    if (state.admits()) socket.data = new ClientConnection(socket, state)
    else socket.terminate()
  },
  data: (socket, chunk) => socket.data?.data(chunk),
  drain: (socket) => socket.data?.drain(),
  close: (socket) => socket.data?.closed(false),
  // A socket that has failed is closed, which `close` reports.
  error: () => {},
})
