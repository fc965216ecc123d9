import type { Clock, Timer } from '../../runtime/clock.ts'

/**
 * Knows which servers are in use, and finds those without calls and commands for the idle timeout. Background
 * processes of a command do not count as use.
 */
export class IdleWatch {
  readonly #clock: Clock
  readonly #timeoutMs: number | null
  readonly #onIdle: (serverId: string) => void | Promise<void>
  readonly #timers = new Map<string, Timer>()
  readonly #uses = new Map<string, number>()

  constructor(clock: Clock, timeoutMs: number | null, onIdle: (serverId: string) => void | Promise<void>) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#onIdle = onIdle
  }

  /** Marks the server as used until the returned function is called. */
  hold(serverId: string): () => void {
    this.#uses.set(serverId, (this.#uses.get(serverId) ?? 0) + 1)
    this.#timers.get(serverId)?.cancel()
    return () => {
      const left = (this.#uses.get(serverId) ?? 1) - 1
      if (left > 0) this.#uses.set(serverId, left)
      else {
        this.#uses.delete(serverId)
        this.touch(serverId)
      }
    }
  }

  /** Reports whether the server is held. */
  isHeld(serverId: string): boolean {
    return this.#uses.has(serverId)
  }

  /** Records a use, which restarts the timeout. */
  touch(serverId: string): void {
    if (this.#timeoutMs === null || this.#uses.has(serverId)) return
    this.#timers.get(serverId)?.cancel()
    const sleep = (): void | Promise<void> => {
      this.#timers.delete(serverId)
      return this.#onIdle(serverId)
    }
    const timer = this.#clock.after(this.#timeoutMs, sleep, { name: 'server.sleep', id: serverId })
    this.#timers.set(serverId, timer)
  }

  /** Stops watching a server that sleeps or was deleted. */
  forget(serverId: string): void {
    this.#timers.get(serverId)?.cancel()
    this.#timers.delete(serverId)
  }

  /** Stops watching all servers. */
  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
  }
}
