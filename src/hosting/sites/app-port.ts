import type { Dialer, LoopbackHost } from '../../compute/driver.ts'
import { AppConnection, type AppExchange, type ConnectionPool } from './app-connection.ts'
import type { HeadMemory } from './http1/head-memory.ts'

/** An app's port on a loopback address of its server: its connections and the number of requests under way. */
export class AppPort implements ConnectionPool {
  readonly #idle: AppConnection[] = []
  #active = 0
  #retired = false
  #drained: (() => void)[] = []

  constructor(
    readonly server: Dialer,
    readonly port: number,
    public host: LoopbackHost,
    readonly memory: HeadMemory,
  ) {}

  /** Takes the most recently used idle connection; null if there is none. */
  takeIdle(): AppConnection | null {
    const connection = this.#idle.pop()
    if (connection === undefined) return null
    this.#active += 1
    return connection
  }

  /** Opens a connection for a request. Calls `connected` or `refused` of the exchange. */
  connect(exchange: AppExchange): AppConnection {
    this.#active += 1
    return new AppConnection(this, exchange)
  }

  release(connection: AppConnection, reusable: boolean): boolean {
    const kept = reusable && !this.#retired
    if (kept) this.#idle.push(connection)
    this.#active -= 1
    if (this.#active === 0) this.#notifyDrained()
    return kept
  }

  /**
   * Counts a use of the port by a connection outside the pool.
   *
   * @returns a function that ends the use
   */
  hold(): () => void {
    this.#active += 1
    return () => {
      this.#active -= 1
      if (this.#active === 0) this.#notifyDrained()
    }
  }

  forget(connection: AppConnection): void {
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /**
   * Closes connections that have been idle since before `since`, before the app closes them itself, perhaps while a
   * request is on its way.
   *
   * @returns whether idle connections are left
   */
  sweep(since: number): boolean {
    while ((this.#idle[0]?.idleSince ?? Number.POSITIVE_INFINITY) < since) this.#idle.shift()?.close()
    return this.#idle.length > 0
  }

  /** Stops taking requests and closes idle connections. */
  retire(): void {
    this.#retired = true
    for (const connection of this.#idle.splice(0)) connection.close()
  }

  /** Takes requests again after `retire`. */
  revive(): void {
    this.#retired = false
  }

  /** Whether no request is under way. */
  get quiet(): boolean {
    return this.#active === 0
  }

  /** Resolves when no request is under way. */
  drained(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  #notifyDrained(): void {
    for (const resolve of this.#drained.splice(0)) resolve()
  }
}
