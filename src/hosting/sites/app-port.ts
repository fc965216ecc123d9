import type { Dialer, LoopbackHost } from '../../compute/sandbox.ts'
import { AppConnection, type AppExchange, type ConnectionPool } from './app-connection.ts'
import type { HeadMemory } from './http1/head-memory.ts'

/** An app's port on a loopback address of its server: its connections and the number of requests under way. */
export class AppPort implements ConnectionPool {
  readonly #idle: AppConnection[] = []
  /** Idle connections that are reserved for one client each. */
  readonly #reserved = new Set<AppConnection>()
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

  /** Takes a connection that is reserved for a client. Returns false if it is closed or belongs to another port. */
  takeReserved(connection: AppConnection): boolean {
    if (!this.#reserved.delete(connection)) return false
    this.#active += 1
    return true
  }

  /** Opens a connection for a request. Calls `connected` or `refused` of the exchange. */
  connect(exchange: AppExchange): AppConnection {
    this.#active += 1
    return new AppConnection(this, exchange)
  }

  release(connection: AppConnection, reusable: boolean): boolean {
    const isKept = reusable && !this.#retired
    if (isKept) this.#idle.push(connection)
    this.#end()
    return isKept
  }

  reserve(connection: AppConnection): boolean {
    if (!this.#retired) this.#reserved.add(connection)
    this.#end()
    return !this.#retired
  }

  /**
   * Counts a use of the port by a connection outside the pool.
   *
   * @returns a function that ends the use
   */
  hold(): () => void {
    this.#active += 1
    return () => this.#end()
  }

  forget(connection: AppConnection): void {
    if (this.#reserved.delete(connection)) return
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /**
   * Closes connections that have been idle since before `since`, and those that are reserved for a client since before
   * `reservedSince`, before the app closes them itself, perhaps while a request is on its way.
   *
   * @returns whether idle connections are left
   */
  sweep(since: number, reservedSince: number): boolean {
    while ((this.#idle[0]?.idleSince ?? Number.POSITIVE_INFINITY) < since) this.#idle.shift()?.close()
    for (const connection of this.#reserved) if (connection.idleSince < reservedSince) connection.discard()
    return this.#idle.length > 0 || this.#reserved.size > 0
  }

  /** Stops taking requests and closes idle connections. */
  retire(): void {
    this.#retired = true
    for (const connection of [...this.#idle.splice(0), ...this.#reserved]) connection.close()
    this.#reserved.clear()
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

  /** Ends the use of the port by one request. */
  #end(): void {
    this.#active -= 1
    if (this.#active > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }
}
