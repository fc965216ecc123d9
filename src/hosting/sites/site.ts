import { ClientConnection } from './client-connection.ts'
import { addressesOf, type ListenFailure, listenFailure, type PortListener } from './ports.ts'
import { type GatewayContext, SiteState } from './site-state.ts'
import type { ServerPort, Site, SiteOptions, Upstream } from './upstream.ts'

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
