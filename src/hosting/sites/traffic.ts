import type { Logger } from '../../runtime/logger.ts'
import { AppPort } from './app-port.ts'
import type { ClientConnection } from './client.ts'
import type { Exchange } from './exchange.ts'
import type { Refusal } from './http1/head.ts'
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

/** What the connections of a gateway share. */
export interface Common {
  readonly times: GatewayTimes
  /** Milliseconds by a clock that is read now and then only. */
  readonly now: () => number
  /** Whether a Host header is ours; throws where it is not. */
  readonly guard: (host: string | null) => void
  readonly logger: Logger
  /** A connection has come: what waits too long is looked for from now on. */
  readonly wake: () => void
}

/** What the connections of one site share: where its requests go, and who waits for that. */
export class Traffic {
  readonly clients = new Set<ClientConnection>()
  /** Those whose request has nowhere to go yet. */
  readonly waiting = new Set<Exchange>()
  /** No further request is taken. */
  closing = false
  #upstream: Upstream = { kind: 'starting' }
  readonly #ports = new Map<number, AppPort>()
  readonly #onClose = new Set<() => void>()
  /** Those who wait until it points to something. */
  #pointed: (() => void)[] = []
  #retry: Timer | null = null

  constructor(
    private readonly common: Common,
    /** See `SiteOptions.onUse`. */
    readonly use: () => () => void,
    /** What a request of HTTP/1.0 without a Host asks for. */
    private readonly ownHost: string,
  ) {}

  get times(): GatewayTimes {
    return this.common.times
  }

  get now(): number {
    return this.common.now()
  }

  get upstream(): Upstream {
    return this.#upstream
  }

  /** The app's port that requests go to, where there is one. */
  port: AppPort | null = null

  /** See `Site.point`. */
  point(upstream: Upstream): void {
    this.#upstream = upstream
    const before = this.port
    this.port = upstream.kind === 'app' ? this.#portOf(upstream.port, upstream.host ?? '127.0.0.1') : null
    if (before !== this.port) before?.retire()
    this.port?.revive()
    this.#dispatchWaiting()
    if (upstream.kind !== 'starting') for (const tell of this.#pointed.splice(0)) tell()
  }

  /** See `Site.drained`. */
  drained(port: number): Promise<void> {
    return this.#ports.get(port)?.drained() ?? Promise.resolve()
  }

  /** The port of the app, as soon as there is one; null where there is none, or not in time. */
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

  /** Has `call` called when the site closes. @returns takes that back */
  onClose(call: () => void): () => void {
    this.#onClose.add(call)
    return () => void this.#onClose.delete(call)
  }

  /** Asks again soon for those whose connection was refused. */
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
      this.common.guard(host)
      return null
    } catch (error) {
      return { status: 403, message: error instanceof Error ? error.message : 'The Host is not ours.' }
    }
  }

  /** What an app is told of its client, in place of what the client itself may have said. */
  told(address: string, host: string | null): Record<string, string> {
    const shown = host ?? this.ownHost
    // An IPv4 address as a socket for both kinds names it.
    const client = address.replace(/^::ffff:(?=[\d.]+$)/, '')
    return { 'X-Forwarded-For': client, 'X-Forwarded-Proto': 'http', 'X-Forwarded-Host': shown, Host: shown }
  }

  /** The same as lines of a head, with a Host where the client has sent none. */
  tell(address: string, host: string | null): Uint8Array {
    const { Host, ...told } = this.told(address, host)
    const all = host === null ? { Host, ...told } : told
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.from(lines.join(''), 'latin1')
  }

  /** Files could not be served. */
  failed(error: unknown): void {
    this.common.logger.error('a file of a site could not be served', { error })
  }

  /** A client has connected. */
  join(client: ClientConnection): void {
    this.clients.add(client)
    this.common.wake()
  }

  /** Ends what waits too long. @returns whether anything is left that may come to */
  sweep(now: number): boolean {
    for (const client of this.clients) client.sweep(now - this.times.headMs, now - this.times.lingerMs)
    const idle = this.port?.sweep(now - this.times.idleMs) ?? false
    return idle || this.clients.size > 0
  }

  /** Cuts off what is under way. */
  close(): void {
    this.closing = true
    clearTimeout(this.#retry ?? undefined)
    this.#retry = null
    this.port?.retire()
    for (const tell of this.#pointed.splice(0)) tell()
    for (const call of [...this.#onClose]) call()
    for (const client of [...this.clients]) {
      client.closed()
      client.outlet.wire.terminate()
    }
  }

  /** One object a port, as long as anything is under way there: what was before counts when it is pointed to again. */
  #portOf(number: number, host: LoopbackHost): AppPort {
    for (const [other, { quiet }] of this.#ports) if (quiet && other !== number) this.#ports.delete(other)
    const port = this.#ports.get(number) ?? new AppPort(number, host)
    port.host = host
    this.#ports.set(number, port)
    return port
  }

  #dispatchWaiting(): void {
    if (this.#upstream.kind === 'starting') return
    for (const exchange of [...this.waiting]) {
      this.waiting.delete(exchange)
      exchange.dispatch()
    }
  }
}
