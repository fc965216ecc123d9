import { otherLoopback } from '../../http/loopback.ts'
import { ClientConnection } from './client-connection.ts'
import { type GatewayContext, SiteState } from './site-state.ts'
import type { Site, SiteOptions, Upstream } from './upstream.ts'

/** One site: its port, and the state of the requests that arrive there or at the main port. */
export class PortSite implements Site {
  readonly state: SiteState
  readonly port: number
  readonly slug: string | null
  readonly #listeners: Bun.TCPSocketListener<ClientConnection | null>[] = []
  /** Addresses that nothing of it listens on yet. */
  #missing: string[]
  #bind: Timer | null = null
  #closed = false

  /** @param host the address to listen on; on the other loopback address too where it is one */
  constructor(
    private readonly host: string,
    options: SiteOptions,
    private readonly context: GatewayContext,
    private readonly onClose: () => void,
  ) {
    this.port = options.port
    this.slug = options.slug
    this.#missing = addressesOf(host)
    this.state = new SiteState(context, options.onUse, `127.0.0.1:${options.port}`)
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`
  }

  /** Listens now or, where another program has the port, as soon as that lets go of it. */
  listen(): void {
    if (this.#tryListen()) return
    this.context.logger.warn(
      `port ${this.port} of a project is taken by another program: the project answers there as soon as it is free`,
    )
    this.#listenLater()
  }

  setUpstream(upstream: Upstream): void {
    if (!this.#closed) this.state.setUpstream(upstream)
  }

  drained(port: number): Promise<void> {
    return this.state.drained(port)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.onClose()
    clearTimeout(this.#bind ?? undefined)
    this.state.close()
    for (const listener of this.#listeners) listener.stop(true)
  }

  #listenLater(): void {
    this.#bind = setTimeout(() => {
      if (this.#tryListen())
        this.context.logger.info(`port ${this.port} of a project is free now, the project answers there`)
      else this.#listenLater()
    }, this.context.times.bindMs)
    this.#bind.unref()
  }

  /** @returns whether another program has none of the addresses */
  #tryListen(): boolean {
    this.#missing = this.#missing.filter((hostname) => !this.#tryAddress(hostname))
    return this.#missing.length === 0
  }

  /** @returns whether it need not be tried again */
  #tryAddress(hostname: string): boolean {
    try {
      const socket = handlersOf(this.state)
      const listener = Bun.listen<ClientConnection | null>({ hostname, port: this.port, data: null, socket })
      this.#listeners.push(listener)
      return true
    } catch (error) {
      const code = (error as { code?: string }).code
      if (code === 'EADDRINUSE') return false
      // Without IPv6 there is no other loopback address.
      if (hostname !== this.host) return true
      this.context.logger.error(`cannot listen on port ${this.port} of a project`, { error })
      return false
    }
  }
}

/** An address, and the other one that "localhost" means: whoever has that has the site's visitors. */
function addressesOf(host: string): string[] {
  const other = otherLoopback(host)
  return other === null ? [host] : [host, other]
}

/** Whether a port can be listened on just now. */
export const isFree = (host: string, port: number): boolean =>
  addressesOf(host).every((hostname) => {
    try {
      Bun.listen({ hostname, port, socket: { data() {} } }).stop(true)
      return true
    } catch (error) {
      return hostname !== host && (error as { code?: string }).code !== 'EADDRINUSE'
    }
  })

const handlersOf = (state: SiteState): Bun.SocketHandler<ClientConnection | null> => ({
  open(socket) {
    socket.setNoDelay(true)
    socket.data = new ClientConnection(socket, state)
  },
  data: (socket, chunk) => socket.data?.receive(chunk),
  drain: (socket) => socket.data?.drain(),
  close: (socket) => socket.data?.closed(),
  // A socket that has failed is closed, which `close` reports.
  error: () => {},
})
