import { paint, shorten } from './output.ts'
import type { OutputStream } from './process-context.ts'
import { CLEAR_LINE } from './terminal-text.ts'

/** Milliseconds before work is shown: short work shows nothing. */
const PATIENCE_MS = 1_000

/** Milliseconds between two updates. */
const UPDATE_MS = 100

/** Returns what is shown of work that goes on, on one line. */
type Describe = (elapsed: string) => string

/** Formats a time that goes on: `4 s`, `2 min 5 s`. */
function elapsedText(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** The last line of a terminal, which says what goes on. Shows nothing where the output is not a terminal. */
export class StatusLine implements Disposable {
  readonly #out: OutputStream
  readonly #work = new Map<string, { describe: Describe; since: number }>()
  #timer: Timer | null = null
  /** What the line has; empty while it is not shown. */
  #shown = ''
  /** Whether the cursor is at the beginning of a line, so that the line can be shown. */
  #isAtStart = true

  /** @param out usually standard error */
  constructor(out: OutputStream) {
    this.#out = out
  }

  /**
   * Shows work from `PATIENCE_MS` on, in place of what was shown under the same name.
   *
   * @param tookMs milliseconds since its begin
   */
  show(name: string, describe: Describe, tookMs = 0): void {
    if (!this.#out.isTTY) return
    this.#work.set(name, { describe, since: performance.now() - tookMs })
    this.#timer ??= setInterval(() => this.#draw(), UPDATE_MS)
  }

  /** Ends work. */
  end(name: string): void {
    this.#work.delete(name)
    if (this.#work.size === 0) this[Symbol.dispose]()
  }

  /** Returns a stream whose text goes above the line. Its text is on the same terminal, if on any. */
  above(out: OutputStream): OutputStream {
    if (!this.#out.isTTY || !out.isTTY) return out
    return {
      write: (data) => {
        if (data.length === 0) return Promise.resolve()
        const clear = this.#shown === '' ? '' : CLEAR_LINE
        this.#shown = ''
        this.#isAtStart = data.at(-1) === '\n' || data.at(-1) === 10
        return out.write(typeof data === 'string' ? clear + data : Buffer.concat([Buffer.from(clear), data]))
      },
      get isTTY() {
        return out.isTTY
      },
      get columns() {
        return out.columns
      },
      get hasColors() {
        return out.hasColors
      },
    }
  }

  #draw(): void {
    const now = performance.now()
    const due = [...this.#work.values()].filter(({ since }) => now - since >= PATIENCE_MS)
    if (due.length === 0 || !this.#isAtStart) return
    const texts = due.map(({ describe, since }) => describe(elapsedText(now - since)))
    // The last column stays empty: some terminals go to the next line there.
    const text = shorten(texts.join(' · '), (this.#out.columns ?? 80) - 1)
    if (text === this.#shown) return
    this.#shown = text
    void this.#out.write(CLEAR_LINE + paint(this.#out, 'dim', text))
  }

  /** Removes the line and what goes on. It may be used again. */
  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#work.clear()
    if (this.#shown !== '') void this.#out.write(CLEAR_LINE)
    this.#shown = ''
  }
}

/**
 * Does work, and shows on a terminal that it goes on if it takes long.
 *
 * @param out usually standard error
 * @param text returns what is being done
 */
export async function showWhile<T>(
  out: OutputStream,
  text: string | (() => string),
  work: () => Promise<T>,
): Promise<T> {
  const status = new StatusLine(out)
  // Whether it is a terminal is asked only then: that opens the stream.
  const timer = setTimeout(
    () =>
      status.show('', (elapsed) => `${typeof text === 'string' ? text : text()} … ${elapsed}`, PATIENCE_MS),
    PATIENCE_MS,
  )
  try {
    return await work()
  } finally {
    clearTimeout(timer)
    status[Symbol.dispose]()
  }
}
