import { type ReadonlySignal, signal } from '@preact/signals'
import type { Changes } from '../api/changes.ts'

/** Milliseconds between updates of relative times. */
const TICK_MS = 5_000

/** Tells the time by berth's clock, which tests may move or freeze. */
export class Clock {
  /** Berth's clock at `#read` by the browser's, in milliseconds since 1970. */
  #at: number
  #read = Date.now()
  #isFrozen = false
  readonly #now: ReturnType<typeof signal<number>>

  constructor(now: string) {
    this.#at = Date.parse(now)
    this.#now = signal(this.#at)
  }

  /** The time, in milliseconds since 1970. Components that read it are drawn again every few seconds. */
  get now(): ReadonlySignal<number> {
    return this.#now as ReadonlySignal<number>
  }

  /** Returns the time as it is now, in milliseconds since 1970. */
  read(): number {
    return this.#isFrozen ? this.#at : this.#at + Date.now() - this.#read
  }

  /** Follows berth's clock. Nothing happens while the page is hidden. */
  start(changes: Changes): void {
    changes.subscribe('clock', ({ value }) => {
      const { now, frozen } = value as { now: string; frozen: boolean }
      this.#at = Date.parse(now)
      this.#read = Date.now()
      this.#isFrozen = frozen
      this.#tick()
    })
    document.addEventListener('visibilitychange', () => this.#tick())
    setInterval(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    if (document.hidden) return
    this.#now.value = this.read()
  }
}
