import { AppConnection, type AppExchange, type ConnectionPool } from './app-connection.ts'
import type { HeadMemory } from './http1/head-memory.ts'
import type { LoopbackHost } from './upstream.ts'

/** An app's port on a loopback address, with its connections and the number of requests under way there. */
export class AppPort implements ConnectionPool {
  readonly #idle: AppConnection[] = []
  #active = 0
  #retired = false
  #drained: (() => void)[] = []

  constructor(
    readonly port: number,
    public host: LoopbackHost,
    readonly memory: HeadMemory,
  ) {}

  /** Takes the idle connection that was used last; null if there is none. */
  takeIdle(): AppConnection | null {
    const connection = this.#idle.pop()
    if (connection === undefined) return null
    this.#active += 1
    return connection
  }

  /** Opens a connection for a request, which gets a call of `connected` or `refused`. */
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

  /** Counts something that is under way on a connection of another kind. @returns ends it */
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
   * Closes connections that have been idle since before `since`. An app that closes them itself may do so as a request
   * goes out.
   *
   * @returns whether others are left
   */
  sweep(since: number): boolean {
    while ((this.#idle[0]?.idleSince ?? Number.POSITIVE_INFINITY) < since) this.#idle.shift()?.close()
    return this.#idle.length > 0
  }

  /** Sends no new request there. */
  retire(): void {
    this.#retired = true
    for (const connection of this.#idle.splice(0)) connection.close()
  }

  /** Takes requests again. */
  revive(): void {
    this.#retired = false
  }

  /** Whether no request is under way there. */
  get quiet(): boolean {
    return this.#active === 0
  }

  /** Resolves when no request is under way there. */
  drained(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  #notifyDrained(): void {
    for (const resolve of this.#drained.splice(0)) resolve()
  }
}
