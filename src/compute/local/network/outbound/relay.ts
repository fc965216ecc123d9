import { closeSync } from 'node:fs'
import type { Logger } from '../../../../runtime/logger.ts'
import { loadLibc } from '../../../../system/calls.ts'
import type { NetworkFault, OutboundControl, OutboundSettings } from '../../../sandbox.ts'
import type { FromRelay, RelayedSocket, ToRelay } from './messages.ts'
import { Refusals } from './refusals.ts'

/** Milliseconds to wait for the Worker's word of what was refused. */
const SYNC_PATIENCE_MS = 250

/** How often the Worker is started again, and the milliseconds in which that counts. @bound program */
const MOST_RESTARTS = 5
const RESTARTS_MS = 60_000

/** A message without its server. */
type Message = ToRelay extends infer Kind ? (Kind extends ToRelay ? Omit<Kind, 'server'> : never) : never

/** The options of a relay. */
interface OutboundRelayOptions {
  logger: Logger
  /** The Worker's file; see `relayWorkerUrl`. */
  worker: string
}

/**
 * Connects servers that have a network of their own with the outside, in a Worker that is started with the first of
 * them.
 */
export class OutboundRelay {
  readonly #options: OutboundRelayOptions
  readonly #servers = new Map<number, RelayedOutbound>()
  #worker: Worker | null = null
  #nextId = 1
  #duplicate: ((fd: number) => number) | null = null
  /** When Workers have ended by themselves, by `performance.now()`. */
  #ends: number[] = []

  constructor(options: OutboundRelayOptions) {
    this.#options = options
  }

  /**
   * Begins to relay for a server; resolves when its sockets are served.
   *
   * @param serverId the server's id, for remedies
   * @param sockets belong to the relay from now on, which closes them
   * @param socketsOfBerth the unix sockets at which berth takes connections of servers to ports of its own, by port
   * @throws Error if a descriptor is no such socket
   */
  async open(
    serverId: string,
    sockets: readonly RelayedSocket[],
    settings: OutboundSettings,
    socketsOfBerth: Readonly<Record<number, string>> = {},
  ): Promise<RelayedOutbound> {
    this.warmUp()
    this.#duplicate ??= loadLibc().duplicate
    const server = this.#nextId++
    const outbound = new RelayedOutbound({
      serverId,
      sockets,
      settings,
      socketsOfBerth,
      duplicate: this.#duplicate,
      logger: this.#options.logger,
      post: (message) => this.#worker?.postMessage({ ...message, server } as ToRelay),
      onClosed: () => this.#servers.delete(server),
    })
    this.#servers.set(server, outbound)
    try {
      await outbound.begin()
    } catch (error) {
      await outbound.close()
      throw error
    }
    return outbound
  }

  /** Starts the Worker, if it does not run, so that the first server has not to wait for it. */
  warmUp(): void {
    this.#worker ??= this.#start()
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
    const worker = this.#worker
    this.#worker = null
    worker?.terminate()
  }

  #start(): Worker {
    const worker = new Worker(this.#options.worker, { ref: false })
    worker.addEventListener('message', ({ data }: MessageEvent<FromRelay>) => {
      if (data.kind === 'failed')
        this.#options.logger.error('a connection of a server failed', { error: data.error })
      else this.#servers.get(data.server)?.notify(data)
    })
    let why = 'its thread ended'
    worker.addEventListener('error', ({ message }) => {
      why = message
    })
    worker.addEventListener('close', () => {
      if (this.#worker === worker) this.#replace(why)
    })
    return worker
  }

  /** Starts another Worker in place of one that has ended; gives up if that happens again and again. */
  #replace(why: string): void {
    const now = performance.now()
    this.#ends = [...this.#ends.filter((at) => now - at < RESTARTS_MS), now]
    if (this.#ends.length > MOST_RESTARTS) {
      this.#worker = null
      this.#options.logger.error('servers reach nothing outside until they are started again', { error: why })
      for (const server of this.#servers.values()) server.fail(why)
      return
    }
    this.#options.logger.error('the relay of the servers ended and is started again', { error: why })
    this.#worker = this.#start()
    for (const server of this.#servers.values()) server.beginAgain()
  }
}

/** The options of a `RelayedOutbound`. */
interface RelayedOutboundOptions {
  /** The server's id, for remedies. */
  serverId: string
  /** Belong to it; the Worker gets duplicates. */
  sockets: readonly RelayedSocket[]
  settings: OutboundSettings
  socketsOfBerth: Readonly<Record<number, string>>
  duplicate(fd: number): number
  logger: Logger
  post(message: Message): void
  onClosed(): void
}

/** The way out of one server. */
export class RelayedOutbound extends Refusals implements OutboundControl {
  readonly #options: RelayedOutboundOptions
  readonly #unconfirmed: PromiseWithResolvers<void>[] = []
  #settings: OutboundSettings
  #fault: NetworkFault | null = null
  #failure: Error | null = null
  #socketsClosed = false
  #closing: Promise<void> | null = null

  constructor(options: RelayedOutboundOptions) {
    super(options.serverId, options.logger)
    this.#options = options
    this.#settings = options.settings
  }

  /**
   * Has the sockets served.
   *
   * @throws Error if a descriptor is no such socket
   */
  begin(): Promise<void> {
    const { serverId, sockets, socketsOfBerth, duplicate } = this.#options
    // A Worker closes what it has taken when it ends.
    const own = sockets.map((socket) => ({ ...socket, fd: duplicate(socket.fd) }))
    return this.request({ kind: 'open', serverId, sockets: own, settings: this.#settings, socketsOfBerth })
  }

  /** Begins again with a new Worker. With that, all that the last one had not confirmed is in effect. */
  beginAgain(): void {
    const lost = this.#unconfirmed.splice(0)
    const begun = this.#closing === null ? this.begin() : Promise.resolve()
    const disturbed = begun.then(() =>
      this.#fault === null ? undefined : this.request({ kind: 'fault', fault: this.#fault }),
    )
    disturbed.then(
      () => {
        for (const confirmed of lost) confirmed.resolve()
      },
      (error: unknown) => {
        for (const confirmed of lost) confirmed.reject(error)
      },
    )
  }

  async enforced(): Promise<boolean> {
    return true
  }

  async apply(settings: OutboundSettings): Promise<void> {
    this.#settings = settings
    this.forget()
    await this.request({ kind: 'settings', settings })
  }

  async disturb(fault: NetworkFault | null): Promise<void> {
    this.#fault = fault
    await this.request({ kind: 'fault', fault })
  }

  async reported(): Promise<void> {
    if (this.#closing !== null) return
    const confirmed = this.request({ kind: 'sync' }).catch(() => {})
    await Promise.race([confirmed, Bun.sleep(SYNC_PATIENCE_MS)])
  }

  /** Cuts all connections and closes the sockets. Calling it again is harmless. */
  close(): Promise<void> {
    this.#closing ??= this.request({ kind: 'close' })
      .catch(() => {})
      .then(() => {
        this.#closeSockets()
        this.#options.onClosed()
      })
    return this.#closing
  }

  /** Sends a message; resolves when it is in effect. */
  request(message: Message): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    const confirmed = Promise.withResolvers<void>()
    this.#unconfirmed.push(confirmed)
    this.#options.post(message)
    return confirmed.promise
  }

  /** Takes a message of the relay about this server. */
  notify(message: Exclude<FromRelay, { kind: 'failed' }>): void {
    if (message.kind === 'done') {
      const confirmed = this.#unconfirmed.shift()
      if (message.error === null) confirmed?.resolve()
      else confirmed?.reject(new Error(message.error))
      return
    }
    const { kind: _, server: __, ...refused } = message
    this.note(refused)
  }

  /** The relay has ended. */
  fail(why: string): void {
    this.#failure = new Error(`The relay of the servers has ended: ${why}`)
    for (const confirmed of this.#unconfirmed.splice(0)) confirmed.reject(this.#failure)
    // So that programs are refused rather than wait.
    this.#closeSockets()
  }

  #closeSockets(): void {
    if (this.#socketsClosed) return
    this.#socketsClosed = true
    for (const { fd } of this.#options.sockets) closeSync(fd)
  }
}

/**
 * Returns the file of the relay's Worker.
 *
 * @param compiled whether this is the executable, which contains it by its path below `src`
 */
export const relayWorkerUrl = (compiled: boolean): string =>
  compiled
    ? './compute/local/network/outbound/relay-worker.ts'
    : new URL('./relay-worker.ts', import.meta.url).href
