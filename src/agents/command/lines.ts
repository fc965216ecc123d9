import { cleanLine, LONGEST_LINE } from '../../runtime/lines.ts'
import { type Reported, type Row, Screen } from './screen.ts'

/** Milliseconds between two looks at what stands on the screen. */
const LOOK_MS = 100

/** Milliseconds without output after which a line without an end, a prompt perhaps, is a line too. */
const QUIET_MS = 200

/** Milliseconds for which a row that is drawn anew must stand still to be told again. */
const STILL_MS = 2_000

/** Milliseconds after which one that never does is told again all the same. */
const RESTLESS_MS = 10_000

/** A line of what a program prints. */
export interface ShownLine {
  readonly text: string
  /** The beginning of it was given before, and was a question then: what is new may be what was typed. */
  readonly settled: boolean
}

/** What parts two paragraphs. */
const EMPTY: ShownLine = { text: '', settled: false }

/** What lines are made with. */
export interface TerminalLinesOptions {
  columns: number
  rows: number
  /** Receives each line, and an empty one for several that stand before it, without control characters. Returns whether it is a question that is being asked now. */
  onLine(line: ShownLine): boolean
}

/**
 * Makes lines of what a program writes to a terminal. A line is reported when it leaves the screen at the top, or when it
 * stands still. Of what a progress display draws over itself the last state is reported, and now and then one before.
 */
export class TerminalLines {
  readonly #options: TerminalLinesOptions
  readonly #screen: Screen
  /** Whether an empty row has left the screen, and nothing since. */
  #emptyLeft = false
  /** Whether a line was reported. */
  #begun = false
  /** A line whose first rows have left the screen. */
  #leaving: { text: string; reported: Reported } | null = null
  #lastOutput = 0
  #timer: Timer | null = null

  /** Loads what draws the terminal. */
  static async open(options: TerminalLinesOptions): Promise<TerminalLines> {
    return new TerminalLines(options, await Screen.open(options.columns, options.rows))
  }

  private constructor(options: TerminalLinesOptions, screen: Screen) {
    this.#options = options
    this.#screen = screen
    screen.onScrolled((row, next) => this.#leave(row, next))
  }

  /** Takes the next bytes; resolves when they are drawn. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#lastOutput = performance.now()
    await this.#screen.write(bytes)
    this.#lookLater()
  }

  /** No more comes, and all is drawn: reports what is left. */
  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const row of this.#leavingRows()) this.#goOn(row)
    const lines = this.#lines()
    this.#finishLeaving()
    this.#reclaim(lines)
    for (const [index, line] of lines.entries()) if (isNews(line)) this.#report(line, lines[index - 1])
    this.#screen.close()
  }

  #lookLater(): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#look()
    }, LOOK_MS)
    this.#timer.unref()
  }

  #look(): void {
    const now = performance.now()
    const lines = this.#lines()
    this.#reclaim(lines)
    const unfinished = now - this.#lastOutput < QUIET_MS ? this.#screen.unfinished : null
    let restless = false
    for (const [index, line] of lines.entries()) {
      const [row] = line
      const text = textOf(line)
      if (row.seen !== text) {
        row.seen = text
        row.seenSince = now
        if (row.reported.at === null) row.reported = { ...row.reported, at: now }
      }
      if (!isNews(line)) continue
      if (line.some((one) => one === unfinished) || !isDue(row, now)) restless = true
      else this.#report(line, lines[index - 1])
    }
    if (restless) this.#lookLater()
  }

  /** The rows at the top that belong to a line which is leaving. */
  #leavingRows(): readonly Row[] {
    if (this.#leaving === null) return []
    const { rows } = this.#screen
    const count = rows.findIndex((row) => !row.continues)
    return count === -1 ? rows : rows.slice(0, count)
  }

  /** The lines on the screen, of which none has begun to leave it: rows, with those that go on them. */
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
  #reclaim(lines: readonly Line[]): void {
    const free = new Map<string, Reported[]>()
    for (const line of lines) {
      const { reported } = line[0]
      if (reported.text !== '' && reported.text !== textOf(line))
        free.set(reported.text, [...(free.get(reported.text) ?? []), reported])
    }
    if (free.size === 0) return
    const taken = new Set<Reported>()
    for (const line of lines) {
      const reported = isNews(line) ? free.get(textOf(line))?.shift() : undefined
      if (reported === undefined) continue
      taken.add(reported)
      line[0].reported = reported
    }
    for (const line of lines) {
      const [row] = line
      if (taken.has(row.reported) && row.reported.text !== textOf(line)) {
        row.reported = { text: '', at: row.seenSince, asked: false }
      }
    }
  }

  /** @param above the line above it */
  #report(line: Line, above: Line | undefined): void {
    const [row] = line
    const text = textOf(line)
    const { reported } = row
    const afterEmpty = above === undefined ? this.#emptyLeft : textOf(above) === ''
    if (reported.text === '') this.#begin(afterEmpty)
    const settled = reported.asked && text.startsWith(reported.text)
    row.reported = { text, at: performance.now(), asked: settled }
    const asked = this.#options.onLine({ text: clean(text), settled })
    if (asked) row.reported = { ...row.reported, asked }
  }

  /** A row leaves the screen at the top; its line is reported when all of it has left. */
  #leave(row: Row, next: boolean): void {
    if (this.#leaving === null || !row.continues) {
      this.#leaving = { text: row.text, reported: row.reported }
    } else this.#goOn(row)
    if (!next) this.#finishLeaving()
  }

  #goOn({ text }: Row): void {
    if (this.#leaving !== null && this.#leaving.text.length <= LONGEST_LINE) this.#leaving.text += text
  }

  /** Before a line: parts it from the one before where something empty is between them. */
  #begin(afterEmpty: boolean): void {
    if (afterEmpty && this.#begun) this.#options.onLine(EMPTY)
    this.#begun = true
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
    this.#begin(afterEmpty)
    this.#options.onLine({ text: clean(text), settled: reported.asked && text.startsWith(reported.text) })
  }
}

/** A row and those that go on it. */
type Line = [Row, ...Row[]]

const textOf = (line: Line): string =>
  (line.length === 1 ? line[0].text : line.map((row) => row.text).join('')).trimEnd()

/** Reports whether a line has text that was not reported. */
function isNews(line: Line): boolean {
  const text = textOf(line)
  return text !== '' && text !== line[0].reported.text
}

/** Reports whether it is time to report the text of a row. */
function isDue({ reported, seenSince }: Row, now: number): boolean {
  if (now - (reported.at ?? now) >= RESTLESS_MS) return true
  return now - seenSince >= (reported.text === '' ? LOOK_MS / 2 : STILL_MS)
}

function clean(text: string): string {
  const line =
    text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)} … (the rest of the line is left out)` : text
  return cleanLine(line)
}
