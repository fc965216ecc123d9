import type { Dialer, LoopbackHost } from '../../compute/sandbox.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { ByteStream } from './http1/byte-stream.ts'

/** A connection to an app, in use by one request. */
export interface AppLink {
  readonly stream: ByteStream
  /** Whether it has carried a request before. The app may be closing such a connection. */
  readonly isReused: boolean
  /** Ends the use, and closes the connection unless another request may follow on it. */
  release(isReusable: boolean): void
}

/** A port of an app: its idle connections and the number of requests under way. */
export class AppPort {
  readonly server: Dialer
  readonly port: number
  readonly #idleMs: number
  /** The idle connections, the longest idle first. */
  #idle: { readonly stream: ByteStream; readonly since: number }[] = []
  #timer: Timer | null = null
  #active = 0
  #isRetired = false
  #drained: (() => void)[] = []

  /** @param idleMs time after which an idle connection is closed: less than an app keeps one */
  constructor(server: Dialer, port: number, idleMs: number) {
    this.server = server
    this.port = port
    this.#idleMs = idleMs
  }

  /** Takes the most recently used idle connection; null if there is none. */
  takeIdle(): AppLink | null {
    for (let last = this.#idle.pop(); last !== undefined; last = this.#idle.pop()) {
      // Unsolicited bytes: any later response would be unsolicited too.
      if (last.stream.take() === undefined) return this.#link(last.stream, true)
      last.stream.end()
    }
    return null
  }

  /**
   * Opens a connection. Gives up at the deadline, or when the signal aborts.
   *
   * @returns the connection, or why there is none, a sentence; null if that took too long
   */
  async connect(
    host: LoopbackHost,
    signal: AbortSignal,
    deadline: number,
  ): Promise<AppLink | { readonly refusal: string | null }> {
    const stream = new ByteStream()
    const link = this.#link(stream, false)
    const giveUp = () => stream.end()
    const timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()))
    signal.addEventListener('abort', giveUp)
    try {
      const dialed = this.server.dial(this.port, host, stream).then(() => true)
      if (await Promise.race([dialed, stream.closing.then(() => stream.isOpened)])) return link
      dialed.catch(() => {})
      link.release(false)
      return { refusal: null }
    } catch (error) {
      link.release(false)
      return { refusal: messageOf(error) }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Closes idle connections, and those in use when their requests are over. */
  retire(): void {
    this.#isRetired = true
    for (const { stream } of this.#idle.splice(0)) stream.end()
  }

  /** Keeps connections again after `retire`. */
  revive(): void {
    this.#isRetired = false
  }

  /** Whether no request is under way. */
  get isQuiet(): boolean {
    return this.#active === 0
  }

  /** Resolves when no request is under way. */
  drained(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  #link(stream: ByteStream, isReused: boolean): AppLink {
    this.#active += 1
    return {
      stream,
      isReused,
      release: (isReusable) => {
        if (isReusable && !this.#isRetired && !stream.isClosed) this.#keep(stream)
        else stream.end()
        this.#active -= 1
        if (this.#active === 0) for (const notify of this.#drained.splice(0)) notify()
      },
    }
  }

  #keep(stream: ByteStream): void {
    this.#idle.push({ stream, since: performance.now() })
    this.#closeOverdueIn(this.#idleMs)
  }

  #closeOverdueIn(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#closeIdleSince(performance.now() - this.#idleMs / 2)
      if (this.#idle.length > 0) this.#closeOverdueIn(this.#idleMs / 2)
    }, ms).unref()
  }

  #closeIdleSince(time: number): void {
    while (this.#idle[0] !== undefined && this.#idle[0].since <= time) this.#idle.shift()?.stream.end()
  }
}
