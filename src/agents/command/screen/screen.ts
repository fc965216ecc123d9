import { type ControlHandler, ControlReader } from './controls.ts'
import { cellsOf, FILLER, Row } from './row.ts'

/** Columns between tabulator stops. */
const TAB = 8

/**
 * What a program has drawn on a terminal: rows of text, as far as they can still change. Colours are left out, and
 * nothing that a program asks of the terminal is answered.
 */
export class Screen {
  readonly #reader: ControlReader
  readonly #columns: number
  readonly #height: number
  readonly #onScrolled: (row: Row) => void
  #rows: Row[]
  /** What is behind an alternate screen. */
  #main: { rows: Row[]; row: number; column: number } | null = null
  #row = 0
  #column = 0
  #saved = { row: 0, column: 0 }
  /** Rows that scroll, `end` exclusive. */
  #region: { start: number; end: number }

  /** `onScrolled` receives each row that leaves at the top: it does not change any more. */
  constructor(columns: number, rows: number, onScrolled: (row: Row) => void) {
    this.#columns = columns
    this.#height = rows
    this.#onScrolled = onScrolled
    this.#rows = this.#emptyRows()
    this.#region = { start: 0, end: rows }
    const handler: ControlHandler = {
      print: (text) => this.#print(cellsOf(text)),
      control: (character) => this.#control(character),
      sequence: (marker, parameters, final) => this.#sequence(marker, parameters, final),
      escape: (final) => this.#escape(final),
    }
    this.#reader = new ControlReader(handler)
  }

  /** Draws the next piece of what the program writes. */
  write(text: string): void {
    this.#reader.push(text)
  }

  /** All rows from the top down. */
  get rows(): readonly Row[] {
    return this.#rows
  }

  /** The row that the cursor is on, where something stands before the cursor: a line that may go on. */
  get unfinished(): Row | null {
    return this.#column > 0 ? this.#current : null
  }

  get #current(): Row {
    const row = this.#rows[this.#row]
    if (row === undefined) throw new RangeError(`There is no row ${this.#row}.`)
    return row
  }

  #emptyRows(): Row[] {
    return Array.from({ length: this.#height }, () => new Row())
  }

  #print(cells: string): void {
    for (let at = 0; at < cells.length; ) {
      if (this.#column >= this.#columns) {
        this.#column = 0
        this.#lineFeed()
        this.#current.continues = true
      }
      let end = at + this.#columns - this.#column
      // A character of two columns for which there is one goes to the next row whole.
      const isCut = cells[end] === FILLER
      if (isCut) end -= 1
      const piece = cells.slice(at, end)
      this.#current.write(this.#column, piece)
      this.#column = isCut ? this.#columns : this.#column + piece.length
      at += piece.length
    }
  }

  #control(character: string): void {
    if (character === '\n' || character === '\v' || character === '\f') this.#feedFinished()
    else if (character === '\r') this.#column = 0
    else if (character === '\b') this.#column = Math.max(this.#column - 1, 0)
    else if (character === '\t') this.#column = this.#columnAt(this.#column + TAB - (this.#column % TAB))
    else if (character === '\u0085') this.#nextLine()
  }

  #escape(final: string): void {
    if (final === 'D') this.#feedFinished()
    else if (final === 'E') this.#nextLine()
    else if (final === 'M') this.#reverseFeed()
    else if (final === '7') this.#saved = { row: this.#row, column: this.#column }
    else if (final === '8') this.#moveTo(this.#saved.row, this.#saved.column)
    else if (final === 'c') this.#clear(0, this.#height)
  }

  #sequence(marker: string, parameters: readonly number[], final: string): void {
    if (marker === '?') {
      if (final === 'h' || final === 'l') for (const mode of parameters) this.#setMode(mode, final === 'h')
      return
    }
    if (marker !== '') return
    const [first = 0, second = 0] = parameters
    // More than the screen has, as many programs give to reach its edge, is as good as that.
    const count = Math.min(Math.max(first, 1), Math.max(this.#columns, this.#height))
    const current = this.#current
    const column = this.#columnAt(this.#column)
    if (final === 'A') this.#moveBy(-count, column)
    else if (final === 'B' || final === 'e') this.#moveBy(count, column)
    else if (final === 'C' || final === 'a') this.#moveTo(this.#row, column + count)
    else if (final === 'D') this.#moveTo(this.#row, column - count)
    else if (final === 'E') this.#moveBy(count, 0)
    else if (final === 'F') this.#moveBy(-count, 0)
    else if (final === 'G' || final === '`') this.#moveTo(this.#row, count - 1)
    else if (final === 'd') this.#moveTo(count - 1, column)
    else if (final === 'H' || final === 'f') this.#moveTo(count - 1, Math.max(second, 1) - 1)
    else if (final === 'J') this.#eraseScreen(first)
    else if (final === 'K') this.#eraseRow(first)
    else if (final === 'X') current.erase(column, column + count)
    else if (final === 'P') current.delete(column, count)
    else if (final === '@') current.insert(column, count, this.#columns)
    else if (final === 'L') this.#scrollBelow(-count)
    else if (final === 'M') this.#scrollBelow(count)
    else if (final === 'S') this.#scroll(this.#region.start, this.#region.end, count)
    else if (final === 'T') this.#scroll(this.#region.start, this.#region.end, -count)
    else if (final === 'r') this.#setRegion(count - 1, second === 0 ? this.#height : second)
    else if (final === 's') this.#saved = { row: this.#row, column }
    else if (final === 'u') this.#moveTo(this.#saved.row, this.#saved.column)
  }

  /** The alternate screen of full-screen programs: what is drawn there goes when they leave it. */
  #setMode(mode: number, on: boolean): void {
    if (mode !== 1049 && mode !== 1047 && mode !== 47) return
    if (on === (this.#main !== null)) return
    if (this.#main === null) {
      this.#main = { rows: this.#rows, row: this.#row, column: this.#column }
      this.#rows = this.#emptyRows()
    } else {
      const { rows, row, column } = this.#main
      ;[this.#main, this.#rows, this.#row, this.#column] = [null, rows, row, column]
    }
  }

  /** Moves so many rows, but not out of those that scroll. */
  #moveBy(rows: number, column: number): void {
    const { start, end } = this.#region
    const top = this.#row >= start ? start : 0
    const bottom = this.#row < end ? end - 1 : this.#height - 1
    this.#moveTo(Math.min(Math.max(this.#row + rows, top), bottom), column)
  }

  #moveTo(row: number, column: number): void {
    this.#row = Math.min(Math.max(row, 0), this.#height - 1)
    this.#column = this.#columnAt(column)
  }

  #columnAt(column: number): number {
    return Math.min(Math.max(column, 0), this.#columns - 1)
  }

  #nextLine(): void {
    this.#column = 0
    this.#feedFinished()
  }

  /** A line feed of the program's own: the next row is a line of its own, whatever stood there before. */
  #feedFinished(): void {
    this.#lineFeed()
    this.#current.continues = false
  }

  #lineFeed(): void {
    if (this.#row === this.#region.end - 1) this.#scroll(this.#region.start, this.#region.end, 1)
    else this.#row = Math.min(this.#row + 1, this.#height - 1)
  }

  #reverseFeed(): void {
    if (this.#row === this.#region.start) this.#scroll(this.#region.start, this.#region.end, -1)
    else this.#row = Math.max(this.#row - 1, 0)
  }

  /** Moves the rows from the cursor's on. */
  #scrollBelow(count: number): void {
    const { start, end } = this.#region
    if (this.#row >= start && this.#row < end) this.#scroll(this.#row, end, count)
  }

  /** Moves rows up, or down where `count` is negative; the first of the screen that goes is told of. */
  #scroll(start: number, end: number, count: number): void {
    for (let left = Math.min(Math.abs(count), end - start); left > 0; left -= 1) {
      const [gone] = this.#rows.splice(count > 0 ? start : end - 1, 1)
      this.#rows.splice(count > 0 ? end - 1 : start, 0, new Row())
      if (gone !== undefined && count > 0 && start === 0 && this.#main === null) this.#onScrolled(gone)
    }
  }

  #setRegion(start: number, end: number): void {
    if (end > this.#height || end - start < 2) return
    this.#region = { start, end }
    this.#moveTo(0, 0)
  }

  #eraseRow(how: number): void {
    const column = this.#columnAt(this.#column)
    if (how === 0) this.#current.erase(column, this.#columns)
    else this.#current.erase(0, how === 1 ? column + 1 : this.#columns)
  }

  #eraseScreen(how: number): void {
    if (how > 1) this.#clear(0, this.#height)
    else {
      if (how === 0) this.#clear(this.#row + 1, this.#height)
      else this.#clear(0, this.#row)
      this.#eraseRow(how)
    }
  }

  #clear(start: number, end: number): void {
    for (const row of this.#rows.slice(start, end)) row.erase(0, this.#columns)
  }
}
