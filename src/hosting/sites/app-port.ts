import { AppConnection } from './app-connection.ts'
import type { Exchange } from './exchange.ts'
import type { LoopbackHost } from './upstream.ts'

/** An app's port on a loopback address, its connections and how many requests are under way there. */
export class AppPort {
  readonly #idle: AppConnection[] = []
  #active = 0
  #retired = false
  #drained: (() => void)[] = []

  constructor(
    readonly port: number,
    public host: LoopbackHost,
  ) {}

  /** An open connection on which nothing is under way, the one used last. */
  takeIdle(): AppConnection | null {
    const connection = this.#idle.pop()
    if (connection === undefined) return null
    this.#active += 1
    return connection
  }

  /** Opens a connection for a request; it is told of it by `connected` or `refused`. */
  connect(exchange: Exchange): AppConnection {
    this.#active += 1
    return new AppConnection(this, exchange)
  }

  /**
   * A request is over at a connection.
   *
   * @param reusable whether the next may go there
   * @returns whether it is kept open
   */
  release(connection: AppConnection, reusable: boolean): boolean {
    const kept = reusable && !this.#retired
    if (kept) this.#idle.push(connection)
    this.#active -= 1
    if (this.#active === 0) this.#tellDrained()
    return kept
  }

  /** Something is under way there on a connection that is not one of these. @returns ends it */
  hold(): () => void {
    this.#active += 1
    return () => {
      this.#active -= 1
      if (this.#active === 0) this.#tellDrained()
    }
  }

  /** An idle connection was closed by the app. */
  forget(connection: AppConnection): void {
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /**
   * Closes connections that are idle since before `since`: an app that closes them itself may do so under a request.
   *
   * @returns whether others are left
   */
  sweep(since: number): boolean {
    while ((this.#idle[0]?.idleSince ?? Number.POSITIVE_INFINITY) < since) this.#idle.shift()?.close()
    return this.#idle.length > 0
  }

  /** No new request goes there. */
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

  #tellDrained(): void {
    for (const resolve of this.#drained.splice(0)) resolve()
  }
}
