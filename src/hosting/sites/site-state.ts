import type { Logger } from '../../runtime/logger.ts'
import { AppPort } from './app-port.ts'
import type { ClientLimit } from './client-limit.ts'
import type { Refusal } from './http1/head.ts'
import type { HeadMemory } from './http1/head-memory.ts'
import type { HttpDate } from './http1/http-date.ts'
import type { ServerPort, SiteOptions, Upstream } from './upstream.ts'

/** Time limits, in milliseconds. */
export interface GatewayTimes {
  /** Longest wait of a request for an app that starts. */
  readonly waitMs: number
  /** Delay before a port that has refused a connection is tried again. */
  readonly retryMs: number
  /** Limit for a complete head, and for an idle connection of a client. */
  readonly headMs: number
  /** The same while there are as many connections as berth takes. */
  readonly crowdedMs: number
  /** Limit for an idle connection to an app. It is shorter than that of any app. */
  readonly idleMs: number
  /** Limit for an idle connection to an app that is reserved for requests of one client. */
  readonly reservedMs: number
  /** Time for which a client's bytes are read after the last response. Closing at once would destroy the response. */
  readonly lingerMs: number
  /** Delay before a site's port that another program has is tried again. */
  readonly bindMs: number
  /** Longest wait for the news that an app's process has ended, after it has closed a connection without a response. */
  readonly crashMs: number
}

/** Default time limits. */
export const TIMES: GatewayTimes = {
  waitMs: 5_000,
  retryMs: 50,
  headMs: 10_000,
  crowdedMs: 1_000,
  idleMs: 1_000,
  reservedMs: 500,
  lingerMs: 2_000,
  bindMs: 1_000,
  crashMs: 300,
}

/** Dependencies that the sites of a gateway share. */
export interface GatewayContext {
  readonly times: GatewayTimes
  /** Time in milliseconds by a coarse clock, read at most a few times a second. */
  readonly now: () => number
  /** Throws for a Host header that is not berth's. */
  readonly guard: (host: string | null) => void
  readonly logger: Logger
  /** Starts the sweep for overdue clients. */
  readonly wake: () => void
  readonly limit: ClientLimit
  /** Returns whether one more connection of a client is accepted. If not, closes idle ones. */
  readonly admits: () => boolean
  readonly memory: HeadMemory
  readonly date: HttpDate
}

/** A client of a site. */
export interface SiteClient {
  /** Closes a client whose head, or whose end, is overdue. Both times are by the gateway's clock. */
  sweep(headBefore: number, lingerBefore: number): void
  /** Resets the connection, because the site closes. */
  terminate(): void
}

/** A WebSocket of the main port that is bridged to the app. */
export interface BridgedSocket {
  /** Bytes that wait for a side that does not read. */
  readonly waiting: number
}

/** A request that waits for the site's upstream. */
export interface WaitingRequest {
  /** Sends the request to the site's current upstream. */
  dispatch(): void
}

/** What an app learns about a client. */
export interface ClientDescription {
  readonly address: string
  /** The client's Host. */
  readonly host: string | null
  /** The last lines of a head, with the empty one that ends it. */
  readonly forwarded: Uint8Array
}

/** State that the clients of one site share: the upstream and the waiting requests. */
export class SiteState {
  readonly clients = new Set<SiteClient>()
  /** Requests that wait for an upstream. */
  readonly waiting = new Set<WaitingRequest>()
  /** WebSockets of the main port. Those of the site's own port pass as bytes, and count as clients. */
  readonly webSockets = new Set<BridgedSocket>()
  /** Whether no further request is accepted. */
  closing = false
  #upstream: Upstream = { kind: 'starting' }
  readonly #ports = new Set<AppPort>()
  readonly #onClose = new Set<() => void>()
  /** Resolvers of callers that wait for an upstream. */
  #upstreamWaiters: (() => void)[] = []
  /** Resolvers of callers that wait for any change of the upstream. */
  readonly #changeWaiters = new Set<() => void>()
  #retry: Timer | null = null
  /** The last result of `describeClient`. */
  #described: ClientDescription | null = null
  /** Requests and WebSockets that are under way. */
  #uses = 0
  /** Ends the use that `onUse` began; null if none is under way. */
  #endUses: (() => void) | null = null

  constructor(
    private readonly context: GatewayContext,
    private readonly options: Pick<SiteOptions, 'onUse' | 'crash'>,
    /** Host for requests of HTTP/1.0 that have no Host field. */
    private readonly ownHost: string,
  ) {}

  get times(): GatewayTimes {
    return this.context.times
  }

  get now(): number {
    return this.context.now()
  }

  get memory(): HeadMemory {
    return this.context.memory
  }

  get date(): HttpDate {
    return this.context.date
  }

  get upstream(): Upstream {
    return this.#upstream
  }

  /** The app's port that requests go to; null if the upstream is no app. */
  port: AppPort | null = null

  /** See `Site.setUpstream`. */
  setUpstream(upstream: Upstream): void {
    this.#upstream = upstream
    const before = this.port
    this.port = upstream.kind === 'app' ? this.#obtainPort(upstream) : null
    if (before !== this.port) before?.retire()
    this.port?.revive()
    this.#dispatchWaiting()
    if (upstream.kind !== 'starting') for (const notify of this.#upstreamWaiters.splice(0)) notify()
    for (const notify of this.#changeWaiters) notify()
  }

  /**
   * Resolves with how the app has crashed, see `SiteOptions.crash`. berth hears of the end of a process a moment after the
   * end of its connections, so this waits for it while the app is the upstream.
   */
  async crash(): Promise<string | null> {
    if (this.#upstream.kind === 'app') {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, this.times.crashMs)
      this.#changeWaiters.add(resolve)
      await promise
      this.#changeWaiters.delete(resolve)
      clearTimeout(timer)
    }
    return this.options.crash?.() ?? null
  }

  /** Counts a request or a WebSocket that begins. Only the first one under way calls `onUse`, which costs time. */
  beginUse(): void {
    this.#uses += 1
    if (this.#uses === 1) this.#endUses = this.options.onUse()
  }

  /** Counts the end of what `beginUse` has counted. */
  endUse(): void {
    this.#uses -= 1
    if (this.#uses > 0) return
    const end = this.#endUses
    this.#endUses = null
    end?.()
  }

  /** See `Site.drained`. */
  drained(port: ServerPort): Promise<void> {
    return this.#find(port)?.drained() ?? Promise.resolve()
  }

  /** Waits while the app starts, up to the limit. Resolves to the app's port, or null if there is none. */
  async appPort(): Promise<AppPort | null> {
    if (this.#upstream.kind === 'starting') {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.times.waitMs)
        this.#upstreamWaiters.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
    return this.port
  }

  /**
   * Calls `listener` when the site closes.
   *
   * @returns a function that unsubscribes
   */
  onClose(listener: () => void): () => void {
    this.#onClose.add(listener)
    return () => void this.#onClose.delete(listener)
  }

  /** Dispatches waiting requests again after a delay. Their connection was refused. */
  retrySoon(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      this.#dispatchWaiting()
    }, this.times.retryMs)
  }

  /**
   * Checks a Host field, see `hostGuard`. HTTP/1.0 allows requests without one. They are safe: browsers never send
   * them, and DNS rebinding needs one.
   */
  checkHost(host: string | null): Refusal | null {
    if (host === null) return null
    try {
      this.context.guard(host)
      return null
    } catch (error) {
      return { status: 403, message: error instanceof Error ? error.message : 'The Host is not ours.' }
    }
  }

  /** Returns the fields that describe a client to an app. They replace any that the client has sent. */
  forwardedFields(address: string, host: string | null): Record<string, string> {
    const shown = host ?? this.ownHost
    // A dual-stack socket reports IPv4 addresses as ::ffff:a.b.c.d.
    const client = address.replace(/^::ffff:(?=[\d.]+$)/, '')
    return { 'X-Forwarded-For': client, 'X-Forwarded-Proto': 'http', 'X-Forwarded-Host': shown, Host: shown }
  }

  /** Returns the same fields as lines of a head. Host is included only if the client has sent none. */
  describeClient(address: string, host: string | null): ClientDescription {
    const last = this.#described
    // Most clients of a site have the same address and ask for the same host.
    if (last !== null && last.address === address && last.host === host) return last
    const { Host, ...fields } = this.forwardedFields(address, host)
    const all = host === null ? { Host, ...fields } : fields
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.#described = { address, host, forwarded: Buffer.from(`${lines.join('')}\r\n`, 'latin1') }
    return this.#described
  }

  /** Logs the failure to serve a file. */
  reportFailure(error: unknown): void {
    this.context.logger.error('a file of a site could not be served', { error })
  }

  /** Whether one more connection of a client is accepted. */
  admits(): boolean {
    return this.context.admits()
  }

  /** Adds a client. */
  addClient(client: SiteClient): void {
    this.clients.add(client)
    this.context.limit.opened()
    this.context.wake()
  }

  /** Removes a client, whose connection has ended. */
  removeClient(client: SiteClient): void {
    if (this.clients.delete(client)) this.context.limit.closed()
  }

  /**
   * Closes overdue clients and idle connections.
   *
   * @returns whether any are left to check
   */
  sweep(now: number): boolean {
    this.sweepClients(now, this.times.headMs)
    const idle = this.port?.sweep(now - this.times.idleMs, now - this.times.reservedMs) ?? false
    return idle || this.clients.size > 0
  }

  /** Closes clients that are overdue, or idle for `headMs`. */
  sweepClients(now: number, headMs: number): void {
    for (const client of this.clients) client.sweep(now - headMs, now - this.times.lingerMs)
  }

  /** Closes the site and resets all clients. */
  close(): void {
    this.closing = true
    clearTimeout(this.#retry ?? undefined)
    this.#retry = null
    this.port?.retire()
    for (const notify of this.#upstreamWaiters.splice(0)) notify()
    for (const notify of this.#changeWaiters) notify()
    for (const listener of [...this.#onClose]) listener()
    for (const client of [...this.clients]) client.terminate()
  }

  /**
   * Returns the `AppPort` of a port. One object serves a port as long as requests are under way there, even if the
   * upstream changes meanwhile.
   */
  #obtainPort({ server, port, host = '127.0.0.1' }: Extract<Upstream, { kind: 'app' }>): AppPort {
    const found = this.#find({ server, port }) ?? new AppPort(server, port, host, this.memory)
    for (const other of this.#ports) if (other.quiet && other !== found) this.#ports.delete(other)
    found.host = host
    this.#ports.add(found)
    return found
  }

  #find({ server, port }: ServerPort): AppPort | undefined {
    return this.#ports.values().find((one) => one.server === server && one.port === port)
  }

  #dispatchWaiting(): void {
    if (this.#upstream.kind === 'starting') return
    for (const request of [...this.waiting]) {
      this.waiting.delete(request)
      request.dispatch()
    }
  }
}
