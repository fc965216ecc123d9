import type { Emulators } from '../../compute/emulators/emulators.ts'
import type { TerminalSize } from '../../compute/sandbox.ts'
import { cleanLine, LONGEST_LINE } from '../../runtime/lines.ts'
import { type Row, type RowReport, Screen } from './screen.ts'

/** Milliseconds between two scans of the screen. */
const SCAN_MS = 100

/** Milliseconds without output after which a line without a line end, such as a prompt, is reported. */
const QUIET_MS = 200

/** Milliseconds for which a redrawn row must not change before it is reported again. */
const STILL_MS = 2_000

/** Milliseconds after which a row that keeps changing is reported again. */
const MAX_STILL_MS = 10_000

/** A line of a program's output. */
export interface TerminalLine {
  readonly text: string
  /** Whether its beginning was reported before as a question. The rest may be the typed answer. */
  readonly afterQuestion: boolean
}

/** The line between two paragraphs. */
const EMPTY: TerminalLine = { text: '', afterQuestion: false }

/** The options of `TerminalLines`. */
interface TerminalLinesOptions {
  emulators: Emulators
  size: TerminalSize
  /** Receives each line, and an empty one for several that stand before it, without control characters. Returns whether it is a question that is being asked now. */
  onLine(line: TerminalLine): boolean
}

/**
 * Converts a program's terminal output to lines. Reports a line when it scrolls off the screen, or when it has not
 * changed for a while. Of a progress display, reports the last state, and sometimes an earlier one.
 */
export class TerminalLines {
  readonly #options: TerminalLinesOptions
  readonly #screen: Screen
  /** Whether an empty row has left the screen, and nothing since. */
  #emptyLeft = false
  /** Whether a line was reported. */
  #hasReported = false
  /** A line whose first rows have left the screen. */
  #leaving: { text: string; reported: RowReport } | null = null
  #lastOutput = 0
  #timer: Timer | null = null
  #hasEnded = false

  constructor(options: TerminalLinesOptions) {
    this.#options = options
    const { emulators, size } = options
    this.#screen = new Screen(emulators, size, (row, next) => this.#handleScroll(row, next))
  }

  /** Adds the next bytes. Resolves when they are drawn. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#lastOutput = performance.now()
    await this.#screen.write(bytes)
    this.#scheduleScan()
  }

  /** Reports the remaining lines after the end of the output. */
  async end(): Promise<void> {
    this.#stop()
    await this.#screen.read()
    for (const row of this.#leavingRows()) this.#appendLeaving(row)
    const lines = this.#lines()
    this.#finishLeaving()
    this.#matchMovedLines(lines)
    for (const [index, line] of lines.entries()) if (isUnreported(line)) this.#report(line, lines[index - 1])
  }

  /** Reports nothing more, and frees the screen. */
  close(): void {
    this.#stop()
    this.#screen.close()
  }

  #stop(): void {
    this.#hasEnded = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #scheduleScan(): void {
    if (this.#timer !== null || this.#hasEnded) return
    this.#timer = setTimeout(() => void this.#scan(), SCAN_MS)
    this.#timer.unref()
  }

  async #scan(): Promise<void> {
    // What is written while the rows are read has a scan of its own.
    this.#timer = null
    await this.#screen.read()
    if (this.#hasEnded) return
    const now = performance.now()
    const lines = this.#lines()
    this.#matchMovedLines(lines)
    const unfinished = now - this.#lastOutput < QUIET_MS ? this.#screen.cursorRow : null
    let isPending = false
    for (const [index, line] of lines.entries()) {
      const [row] = line
      const text = textOf(line)
      if (row.lastText !== text) {
        row.lastText = text
        row.lastChange = now
        if (row.reported.at === null) row.reported = { ...row.reported, at: now }
      }
      if (!isUnreported(line)) continue
      if (line.some((one) => one === unfinished) || !isDue(row, now)) isPending = true
      else this.#report(line, lines[index - 1])
    }
    if (isPending) this.#scheduleScan()
  }

  /** Returns the top rows that continue a line whose first rows have scrolled off. */
  #leavingRows(): readonly Row[] {
    if (this.#leaving === null) return []
    const { rows } = this.#screen
    const count = rows.findIndex((row) => !row.continues)
    return count === -1 ? rows : rows.slice(0, count)
  }

  /** Returns the lines that are completely on the screen. */
  #lines(): Line[] {
    const lines: Line[] = []
    for (const row of this.#screen.rows.slice(this.#leavingRows().length)) {
      const last = lines.at(-1)
      if (row.continues && last !== undefined) last.push(row)
      else lines.push([row])
    }
    return lines
  }

  /**
   * Finds lines that were reported and then drawn again in another row, as programs do that keep something at the
   * bottom. They are not reported again, and the text in their old row is new.
   */
  #matchMovedLines(lines: readonly Line[]): void {
    const free = new Map<string, RowReport[]>()
    for (const line of lines) {
      const { reported } = line[0]
      if (reported.text !== '' && reported.text !== textOf(line))
        free.set(reported.text, [...(free.get(reported.text) ?? []), reported])
    }
    if (free.size === 0) return
    const taken = new Set<RowReport>()
    for (const line of lines) {
      const reported = isUnreported(line) ? free.get(textOf(line))?.shift() : undefined
      if (reported === undefined) continue
      taken.add(reported)
      line[0].reported = reported
    }
    for (const line of lines) {
      const [row] = line
      if (taken.has(row.reported) && row.reported.text !== textOf(line)) {
        row.reported = { text: '', at: row.lastChange, asked: false }
      }
    }
  }

  /** @param above the line above it */
  #report(line: Line, above: Line | undefined): void {
    const [row] = line
    const text = textOf(line)
    const { reported } = row
    const afterEmpty = above === undefined ? this.#emptyLeft : textOf(above) === ''
    if (reported.text === '') this.#separate(afterEmpty)
    const afterQuestion = reported.asked && text.startsWith(reported.text)
    row.reported = { text, at: performance.now(), asked: afterQuestion }
    const asked = this.#options.onLine({ text: clean(text), afterQuestion })
    if (asked) row.reported = { ...row.reported, asked }
  }

  /** Handles a row that scrolls off. Reports its line when all of its rows have. */
  #handleScroll(row: Row, next: boolean): void {
    if (this.#leaving === null || !row.continues) {
      this.#leaving = { text: row.text, reported: row.reported }
    } else this.#appendLeaving(row)
    if (!next) this.#finishLeaving()
  }

  #appendLeaving({ text }: Row): void {
    if (this.#leaving !== null && this.#leaving.text.length <= LONGEST_LINE) this.#leaving.text += text
  }

  /** Reports an empty line before the next one if there are empty lines between them. */
  #separate(afterEmpty: boolean): void {
    if (afterEmpty && this.#hasReported) this.#options.onLine(EMPTY)
    this.#hasReported = true
  }

  #finishLeaving(): void {
    const line = this.#leaving
    this.#leaving = null
    if (line === null) return
    const { reported } = line
    const text = line.text.trimEnd()
    const afterEmpty = this.#emptyLeft
    this.#emptyLeft = text === ''
    if (text === '' || text === reported.text) return
    this.#separate(afterEmpty)
    this.#options.onLine({
      text: clean(text),
      afterQuestion: reported.asked && text.startsWith(reported.text),
    })
  }
}

/** A row and the rows that continue it. */
type Line = [Row, ...Row[]]

const textOf = (line: Line): string =>
  (line.length === 1 ? line[0].text : line.map((row) => row.text).join('')).trimEnd()

/** Reports whether a line has text that was not reported. */
function isUnreported(line: Line): boolean {
  const text = textOf(line)
  return text !== '' && text !== line[0].reported.text
}

/** Reports whether it is time to report the text of a row. */
function isDue({ reported, lastChange }: Row, now: number): boolean {
  if (now - (reported.at ?? now) >= MAX_STILL_MS) return true
  return now - lastChange >= (reported.text === '' ? SCAN_MS / 2 : STILL_MS)
}

function clean(text: string): string {
  const line =
    text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)} … (the rest of the line is left out)` : text
  return cleanLine(line)
}
