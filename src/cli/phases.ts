import { formatDuration, paint } from './output.ts'
import type { OutputStream } from './process-context.ts'
import type { StatusLine } from './status-line.ts'

/** Milliseconds below which the time of a phase is not worth a line. */
const QUICK_MS = 50

/** Phases that count as part of the next one: they take no time of their own. */
const JOINED: ReadonlySet<string> = new Set(['start'])

/** Prints the phases of work as they begin, and how long each has taken. The current one is on the status line. */
export class PhaseReport {
  readonly #out: OutputStream
  readonly #status: StatusLine
  /** What the status line has before the phase; empty where there is only one work. */
  readonly #label: string
  #phase: string | null = null
  #since = 0

  /**
   * @param out above the status line
   * @param label of the work among several
   */
  constructor(out: OutputStream, status: StatusLine, label = '') {
    this.#out = out
    this.#status = status
    this.#label = label
  }

  /**
   * Ends the phase before, and begins another.
   *
   * @param heading the line to print
   */
  async begin(phase: string, heading: string): Promise<void> {
    if (this.#phase === null || !JOINED.has(this.#phase)) {
      await this.end()
      this.#since = performance.now()
    }
    this.#phase = phase
    const before = this.#label === '' ? '' : `${this.#label}: `
    this.#status.show(this.#label, (time) => `${before}${phase} … ${time}`)
    await this.#out.write(`${heading}\n`)
  }

  /** Ends the phase, if there is one, and prints how long it has taken unless it was quick. */
  async end(isDone = true): Promise<void> {
    const phase = this.#phase
    if (phase === null) return
    this.#phase = null
    this.#status.end(this.#label)
    const ms = performance.now() - this.#since
    if (isDone && ms < QUICK_MS) return
    const mark = isDone ? '✓' : '✗'
    await this.#out.write(`${paint(this.#out, 'dim', `${mark} ${phase} ${formatDuration(ms)}`)}\n`)
  }
}
