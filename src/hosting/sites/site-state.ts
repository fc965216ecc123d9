import type { Logger } from '../../runtime/logger.ts'
import { AppPort } from './app-port.ts'
import type { Refusal } from './http1/head.ts'
import type { HeadMemory } from './http1/head-memory.ts'
import type { HttpDate } from './http1/http-date.ts'
import type { LoopbackHost, Upstream } from './upstream.ts'

/** How long things may take, in milliseconds. */
export interface GatewayTimes {
  /** A request waits so long for an app that starts. */
  readonly waitMs: number
  /** A port that refuses a connection is tried again after this. */
  readonly retryMs: number
  /** A head has to be complete, and an idle connection is closed, after this. */
  readonly headMs: number
  /** A connection to an app on which nothing is under way is kept so long: shorter than any app keeps it. */
  readonly idleMs: number
  /** What a client still sends is read so long behind the last answer, so that it gets that. */
  readonly lingerMs: number
  /** A site's port that another program has is tried again after this. */
  readonly bindMs: number
}

/** The times that hold where none are given. */
export const TIMES: GatewayTimes = {
  waitMs: 5_000,
  retryMs: 50,
  headMs: 60_000,
  idleMs: 1_000,
  lingerMs: 2_000,
  bindMs: 1_000,
}

/** What the sites of a gateway share. */
export interface GatewayContext {
  readonly times: GatewayTimes
  /** Milliseconds by a clock that is read only now and then. */
  readonly now: () => number
  /** Throws for a Host header that is not berth's. */
  readonly guard: (host: string | null) => void
  readonly logger: Logger
  /** Starts to look for what waits too long. */
  readonly wake: () => void
  readonly memory: HeadMemory
  readonly date: HttpDate
}

/** A client of a site. */
export interface SiteClient {
  /** Ends it if its head, or its end, is overdue. Both times by the gateway's clock. */
  sweep(headBefore: number, lingerBefore: number): void
  /** Cuts it off: the site closes. */
  terminate(): void
}

/** A request that waits until the site points to something. */
export interface WaitingRequest {
  /** Sends the request to where the site points now. */
  dispatch(): void
}

/** State that the clients of one site share: where requests go, and which of them wait. */
export class SiteState {
  readonly clients = new Set<SiteClient>()
  /** Requests that have nowhere to go yet. */
  readonly waiting = new Set<WaitingRequest>()
  /** No further request is taken. */
  closing = false
  #upstream: Upstream = { kind: 'starting' }
  readonly #ports = new Map<number, AppPort>()
  readonly #onClose = new Set<() => void>()
  /** Called as soon as the site points to something. */
  #pointed: (() => void)[] = []
  #retry: Timer | null = null

  constructor(
    private readonly context: GatewayContext,
    /** See `SiteOptions.onUse`. */
    readonly use: () => () => void,
    /** The Host of a request of HTTP/1.0 that names none. */
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

  /** The app's port that requests go to; null if they go elsewhere. */
  port: AppPort | null = null

  /** See `Site.point`. */
  setUpstream(upstream: Upstream): void {
    this.#upstream = upstream
    const before = this.port
    this.port = upstream.kind === 'app' ? this.#portOf(upstream.port, upstream.host ?? '127.0.0.1') : null
    if (before !== this.port) before?.retire()
    this.port?.revive()
    this.#dispatchWaiting()
    if (upstream.kind !== 'starting') for (const notify of this.#pointed.splice(0)) notify()
  }

  /** See `Site.drained`. */
  drained(port: number): Promise<void> {
    return this.#ports.get(port)?.drained() ?? Promise.resolve()
  }

  /** Resolves to the app's port as soon as there is one; to null if there is none, or not in time. */
  async appPort(): Promise<AppPort | null> {
    if (this.#upstream.kind === 'starting') {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.times.waitMs)
        this.#pointed.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
    return this.port
  }

  /** Subscribes to the closing of the site. @returns unsubscribes */
  onClose(listener: () => void): () => void {
    this.#onClose.add(listener)
    return () => void this.#onClose.delete(listener)
  }

  /** Dispatches waiting requests again soon: their connection was refused. */
  retrySoon(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      this.#dispatchWaiting()
    }, this.times.retryMs)
  }

  /** See `hostGuard`; a request of HTTP/1.0 may have no Host: no browser sends such, and rebinding needs one. */
  checkHost(host: string | null): Refusal | null {
    if (host === null) return null
    try {
      this.context.guard(host)
      return null
    } catch (error) {
      return { status: 403, message: error instanceof Error ? error.message : 'The Host is not ours.' }
    }
  }

  /** Makes the fields that describe a client to an app, in place of any that the client has sent. */
  forwardedFields(address: string, host: string | null): Record<string, string> {
    const shown = host ?? this.ownHost
    // An IPv4 address as a socket for both kinds names it.
    const client = address.replace(/^::ffff:(?=[\d.]+$)/, '')
    return { 'X-Forwarded-For': client, 'X-Forwarded-Proto': 'http', 'X-Forwarded-Host': shown, Host: shown }
  }

  /** Makes the same fields as lines of a head; Host is one of them only if the client has sent none. */
  forwardedLines(address: string, host: string | null): Buffer {
    const { Host, ...fields } = this.forwardedFields(address, host)
    const all = host === null ? { Host, ...fields } : fields
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.from(lines.join(''), 'latin1')
  }

  /** Logs that a file could not be served. */
  reportFailure(error: unknown): void {
    this.context.logger.error('a file of a site could not be served', { error })
  }

  /** Adds a client. */
  addClient(client: SiteClient): void {
    this.clients.add(client)
    this.context.wake()
  }

  /** Ends what waits too long. @returns whether anything is left that may come to */
  sweep(now: number): boolean {
    for (const client of this.clients) client.sweep(now - this.times.headMs, now - this.times.lingerMs)
    const idle = this.port?.sweep(now - this.times.idleMs) ?? false
    return idle || this.clients.size > 0
  }

  /** Cuts off all clients. */
  close(): void {
    this.closing = true
    clearTimeout(this.#retry ?? undefined)
    this.#retry = null
    this.port?.retire()
    for (const notify of this.#pointed.splice(0)) notify()
    for (const listener of [...this.#onClose]) listener()
    for (const client of [...this.clients]) client.terminate()
  }

  /** Returns one object per port for as long as anything is under way there, also if the site points elsewhere meanwhile. */
  #portOf(number: number, host: LoopbackHost): AppPort {
    for (const [other, { quiet }] of this.#ports) if (quiet && other !== number) this.#ports.delete(other)
    const port = this.#ports.get(number) ?? new AppPort(number, host, this.memory)
    port.host = host
    this.#ports.set(number, port)
    return port
  }

  #dispatchWaiting(): void {
    if (this.#upstream.kind === 'starting') return
    for (const request of [...this.waiting]) {
      this.waiting.delete(request)
      request.dispatch()
    }
  }
}
