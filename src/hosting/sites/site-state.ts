import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { AppPort } from './app-port.ts'
import { Refusal } from './http1/head.ts'
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
  lingerMs: 2_000,
  bindMs: 1_000,
  crashMs: 300,
}

/** Dependencies that the sites of a gateway share. */
export interface GatewayContext {
  readonly times: GatewayTimes
  /** Throws for a Host header that is not berth's. */
  readonly guard: (host: string | null) => void
  readonly logger: Logger
  /** Returns whether one more connection of a client is accepted. If not, closes idle ones. */
  readonly admits: () => boolean
}

/** A client's connection to a site's own port. */
export interface SiteClient {
  /** Closes the connection if it has waited that long for a request, or for the rest of its head. */
  expire(ms: number): void
  /** Resets the connection. */
  terminate(): void
}

/** A WebSocket of the main port that is bridged to the app. */
export interface BridgedSocket {
  /** Bytes that wait for an app that does not read. */
  readonly waiting: number
}

/** State that the clients of one site share: the upstream, and what is under way there. */
export class SiteState {
  readonly clients = new Set<SiteClient>()
  /** WebSockets of the main port. Those of the site's own port pass as bytes, and count as clients. */
  readonly webSockets = new Set<BridgedSocket>()
  readonly #closing = new AbortController()
  #upstream: Upstream = { kind: 'starting' }
  readonly #ports = new Set<AppPort>()
  /** Called at the next change of the upstream. */
  readonly #waiting = new Set<() => void>()
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

  get upstream(): Upstream {
    return this.#upstream
  }

  /** Aborts when the site closes. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Number of requests that wait for a change of the upstream. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** The app's port that requests go to; null if the upstream is no app. */
  port: AppPort | null = null

  /** See `Site.setUpstream`. */
  setUpstream(upstream: Upstream): void {
    this.#upstream = upstream
    const before = this.port
    this.port = upstream.kind === 'app' ? this.#obtainPort(upstream) : null
    if (before !== this.port) before?.retire()
    for (const notify of [...this.#waiting]) notify()
  }

  /** Resolves at the next change of the upstream, after that time, or when the signal aborts. */
  changed(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.#waiting.delete(end)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.#waiting.add(end)
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
  }

  /**
   * Resolves with how the app has crashed, see `SiteOptions.crash`. berth hears of the end of a process a moment after the
   * end of its connections, so this waits for it while the app is the upstream.
   */
  async crash(signal: AbortSignal): Promise<string | null> {
    if (this.#upstream.kind === 'app') await this.changed(this.times.crashMs, signal)
    return this.options.crash?.() ?? null
  }

  /**
   * Counts a request or a WebSocket that begins. Only the first one under way calls `onUse`.
   *
   * @returns a function that counts its end
   */
  beginUse(): () => void {
    this.#uses += 1
    if (this.#uses === 1) this.#endUses = this.options.onUse()
    return () => {
      this.#uses -= 1
      if (this.#uses > 0) return
      this.#endUses?.()
      this.#endUses = null
    }
  }

  /** See `Site.drained`. */
  drained(port: ServerPort): Promise<void> {
    return this.#find(port)?.drained() ?? Promise.resolve()
  }

  /**
   * Checks a Host field, see `hostGuard`. HTTP/1.0 allows requests without one. They are safe: browsers never send
   * them, and DNS rebinding needs one.
   *
   * @throws Refusal
   */
  checkHost(host: string | null): void {
    if (host === null) return
    try {
      this.context.guard(host)
    } catch (error) {
      throw new Refusal(403, messageOf(error))
    }
  }

  /** Returns the lines that describe a client to an app, with Host only if the client has sent none. */
  forwardedLines(address: string, host: string | null): string {
    // A dual-stack socket reports IPv4 addresses as ::ffff:a.b.c.d.
    const client = address.replace(/^::ffff:(?=[\d.]+$)/, '')
    const own = host === null ? `Host: ${this.ownHost}\r\n` : ''
    const shown = host ?? this.ownHost
    return `${own}X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ${shown}\r\n`
  }

  /** Logs the failure to serve a request. */
  reportFailure(error: unknown): void {
    this.context.logger.error('a file of a site could not be served', { error })
  }

  /** Whether one more connection of a client is accepted. */
  admits(): boolean {
    return this.context.admits()
  }

  /** Closes the site and resets all clients. */
  close(): void {
    this.port?.retire()
    this.#closing.abort()
    for (const client of [...this.clients]) client.terminate()
  }

  #find({ server, port }: ServerPort): AppPort | undefined {
    return this.#ports.values().find((one) => one.server === server && one.port === port)
  }

  /**
   * Returns the `AppPort` of a port. One object serves a port as long as requests are under way there, even if the
   * upstream changes meanwhile.
   */
  #obtainPort({ server, port }: ServerPort): AppPort {
    const found = this.#find({ server, port }) ?? new AppPort(server, port, this.times.idleMs)
    for (const other of this.#ports) if (other.isQuiet && other !== found) this.#ports.delete(other)
    this.#ports.add(found)
    found.revive()
    return found
  }
}
