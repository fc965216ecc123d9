import type { Masks } from '../../runtime/masks.ts'
import type { AgentEvent } from '../events.ts'

/**
 * Most lines and characters that are reported while they are printed. Of the rest, only the end is reported.
 * @bound program
 */
const MAX_LINES = 4_000
const MAX_CHARACTERS = 2 * 2 ** 20

/** Lines and characters of the end. */
const LAST_LINES = 500
const LAST_CHARACTERS = 256 * 1024

/** Most lines, characters and milliseconds of one event. */
const BATCH_LINES = 200
const BATCH_CHARACTERS = 32 * 1024
const BATCH_MS = 150

/** Lines of the end that a result shows, and their characters. */
const RESULT_LINES = 40
const RESULT_CHARACTERS = 4_000

/** Most lines per second, and milliseconds of delay after each chunk of a program that prints more. @bound program */
const MAX_LINES_PER_SECOND = 5_000
const THROTTLE_MS = 10

/** Writes a program's output into the transcript: the beginning as it is printed, and the end. */
export class TerminalReport {
  readonly #masks: Masks
  readonly #report: (event: AgentEvent) => void
  #batch: string[] = []
  #batchCharacters = 0
  #timer: Timer | null = null
  #reported = { lines: 0, characters: 0 }
  #tail: string[] = []
  #lastCharacters = 0
  #omitted = 0
  #second = { from: 0, lines: 0 }

  constructor(masks: Masks, report: (event: AgentEvent) => void) {
    this.#masks = masks
    this.#report = report
  }

  /** Adds a line. */
  add(line: string): void {
    this.#second.lines += 1
    this.#addToTail(line)
    const { lines, characters } = this.#reported
    if (this.#omitted > 0 || lines >= MAX_LINES || characters >= MAX_CHARACTERS) {
      this.#omitted += 1
      return
    }
    this.#reported.lines += 1
    this.#reported.characters += line.length
    this.#batch.push(line)
    this.#batchCharacters += line.length
    if (this.#batch.length >= BATCH_LINES || this.#batchCharacters >= BATCH_CHARACTERS) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS)
  }

  /** Returns what to wait for before taking more output, which slows down a program that prints without end. */
  throttle(): void | Promise<void> {
    const now = performance.now()
    if (now - this.#second.from >= 1000) this.#second = { from: now, lines: 0 }
    if (this.#second.lines > MAX_LINES_PER_SECOND) return Bun.sleep(THROTTLE_MS)
  }

  /** Reports a remark, after the lines so far. */
  notice(text: string): void {
    this.flush()
    this.#report({ type: 'notice', text })
  }

  /** Reports the rest after the end of the output. */
  end(): void {
    this.flush()
    if (this.#omitted === 0) return
    const last = this.#tail.slice(-this.#omitted)
    const missing = this.#omitted - last.length
    this.#omitted = 0
    if (missing > 0) this.#report({ type: 'notice', text: `${missing} lines are left out here.` })
    for (let at = 0; at < last.length; at += BATCH_LINES) this.#send(last.slice(at, at + BATCH_LINES))
  }

  /** The end of the output, for a result; empty if there was none. */
  get tail(): string {
    const lines = this.#tail.slice(-RESULT_LINES)
    const shown: string[] = []
    let characters = 0
    for (const line of lines.reverse()) {
      characters += line.length + 1
      if (characters > RESULT_CHARACTERS && shown.length > 0) break
      shown.unshift(line.slice(-RESULT_CHARACTERS))
    }
    return this.#mask(shown)
  }

  #addToTail(line: string): void {
    this.#tail.push(line)
    this.#lastCharacters += line.length
    // Cut only now and then, because each cut copies the kept text.
    if (this.#tail.length < 2 * LAST_LINES && this.#lastCharacters < 2 * LAST_CHARACTERS) return
    let from = Math.max(this.#tail.length - LAST_LINES, 0)
    let characters = this.#tail.slice(from).reduce((sum, { length }) => sum + length, 0)
    for (; characters > LAST_CHARACTERS && from < this.#tail.length - 1; from += 1) {
      characters -= this.#tail[from]?.length ?? 0
    }
    this.#tail = this.#tail.slice(from)
    this.#lastCharacters = characters
  }

  /** Reports the lines so far. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const lines = this.#batch
    this.#batch = []
    this.#batchCharacters = 0
    if (lines.length > 0) this.#send(lines)
  }

  #send(lines: readonly string[]): void {
    this.#report({ type: 'terminal', text: this.#mask(lines) })
  }

  /** Masks secrets, and the beginning of one at the end of a line: its rest may follow. */
  #mask(lines: readonly string[]): string {
    return lines
      .map((line) => {
        const stream = this.#masks.stream()
        return stream.push(line) + stream.flush()
      })
      .join('\n')
  }
}
