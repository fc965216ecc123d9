import type { KeptScreen } from './screen.ts'
import type { Viewer } from './viewer.ts'

/** Milliseconds for which a program is held up while no viewer reads. */
const PATIENCE_MS = 10_000

/**
 * Milliseconds for which a program that prints much waits for its first viewer. Who opens a terminal attaches at once,
 * and would otherwise miss what exceeds the scrollback.
 */
const FIRST_VIEWER_MS = 1_000

/**
 * Holds up the program of a terminal, by not taking its output, as long as one of these is true:
 *
 * - its first viewer is expected, and would miss some of what it prints
 * - the screen has too much to draw
 * - nobody of those who watch reads, for at most 10 s
 */
export class HoldUp {
  readonly #screen: Pick<KeptScreen, 'isFull' | 'isLongUnseen'>
  readonly #viewers: ReadonlySet<Viewer>
  /** Lets the program go on; null while it is not held up. */
  #resume: (() => void) | null = null
  #impatience: Timer | undefined
  /** Runs while the first viewer is expected. */
  #expected: Timer | null

  /** @param onNobody called if the first viewer does not come in time */
  constructor(
    screen: Pick<KeptScreen, 'isFull' | 'isLongUnseen'>,
    viewers: ReadonlySet<Viewer>,
    onNobody: () => void,
  ) {
    this.#screen = screen
    this.#viewers = viewers
    this.#expected = setTimeout(() => {
      this.expectNobody()
      onNobody()
    }, FIRST_VIEWER_MS)
  }

  /** Whether the program has to wait. */
  get isNeeded(): boolean {
    const isEarly = this.#expected !== null && this.#screen.isLongUnseen
    return isEarly || this.#screen.isFull || this.#viewersAreFull
  }

  /** Returns what the program has to wait for after it has printed; undefined if nothing holds it up. */
  begin(): Promise<void> | undefined {
    if (!this.isNeeded) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    if (this.#viewersAreFull) this.#impatience = setTimeout(() => this.giveUp(), PATIENCE_MS)
    return promise
  }

  /** Lets the program go on if nothing holds it up any more. Call it when a viewer or the screen has taken something. */
  release(): void {
    if (this.#resume === null || this.isNeeded) return
    clearTimeout(this.#impatience)
    const resume = this.#resume
    this.#resume = null
    resume()
  }

  /** Waits no longer for the first viewer: it has come, or none is needed. */
  expectNobody(): void {
    if (this.#expected === null) return
    clearTimeout(this.#expected)
    this.#expected = null
    this.release()
  }

  /** Waits no longer for any viewer. Those that do not read are sent the screen when they do. */
  giveUp(): void {
    this.expectNobody()
    for (const viewer of this.#viewers) if (viewer.isFull) viewer.fallBehind()
    this.release()
  }

  get #viewersAreFull(): boolean {
    // Those who have fallen behind are sent the screen when they read again, so nobody waits for them.
    const reading = [...this.#viewers].filter((viewer) => !viewer.isBehind)
    return reading.length > 0 && reading.every((viewer) => viewer.isFull)
  }
}
