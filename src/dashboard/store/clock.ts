import { computed, type ReadonlySignal, signal } from '@preact/signals'
import type { ChangeStream } from '../api/changes.ts'

/** Milliseconds between updates of relative times. */
const TICK_MS = 5_000

/** What was done to the clock. */
interface ClockSteering {
  readonly isFrozen: boolean
  /** How far it is ahead of the machine's calendar, in milliseconds. */
  readonly offsetMs: number
}

/** Tells the time by berth's clock, which tests may move or freeze. */
export class PageClock {
  /** Berth's clock at `#read` by the browser's, in milliseconds since 1970. */
  #at: number
  #read = Date.now()
  readonly #steering = signal<ClockSteering>({ isFrozen: false, offsetMs: 0 })
  readonly #now: ReturnType<typeof signal<number>>

  constructor(now: string) {
    this.#at = Date.parse(now)
    this.#now = signal(this.#at)
  }

  /** The time, in milliseconds since 1970. Components that read it are drawn again every few seconds. */
  get now(): ReadonlySignal<number> {
    return this.#now as ReadonlySignal<number>
  }

  /** The date in UTC, as in `2030-01-31`. Components that read it are drawn again when it changes. */
  readonly today: ReadonlySignal<string> = computed(() => new Date(this.now.value).toISOString().slice(0, 10))

  /** Whether the clock was moved or frozen. */
  get steering(): ReadonlySignal<ClockSteering> {
    return this.#steering
  }

  /** Returns the current time, in milliseconds since 1970. */
  read(): number {
    return this.#steering.peek().isFrozen ? this.#at : this.#at + Date.now() - this.#read
  }

  /** Follows berth's clock. Nothing happens while the page is hidden. */
  start(changes: ChangeStream): void {
    changes.subscribe('clock', ({ value }) => this.set(value as Parameters<PageClock['set']>[0]))
    document.addEventListener('visibilitychange', () => this.#tick())
    setInterval(() => this.#tick(), TICK_MS)
  }

  /** Sets it by berth's response. */
  set({ now, frozen, offset_ms: offsetMs }: { now: string; frozen: boolean; offset_ms: number }): void {
    this.#at = Date.parse(now)
    this.#read = Date.now()
    this.#steering.value = { isFrozen: frozen, offsetMs }
    this.#tick()
  }

  #tick(): void {
    if (document.hidden) return
    this.#now.value = this.read()
  }
}
