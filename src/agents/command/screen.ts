import type { IBufferLine, Terminal } from '@xterm/headless'
import { parameterValue } from '../../runtime/bounded-emulator.ts'
import { openEmulator } from '../../runtime/emulator.ts'

/** Rows above the screen that the emulator keeps. One would do: each is read as it leaves. */
const SCROLLBACK = 10

/** Bytes that are parsed at a time. */
const CHUNK_BYTES = 64 * 1024

/**
 * Bytes after which a string, such as a title or a picture, is given up if nothing has moved since it began: a program
 * that never ends one would show nothing more.
 */
const MAX_STRING = 4 * 2 ** 20

/** CAN ends a sequence or a string, and shows nothing (ECMA-48, section 8.3.6). */
const CANCEL = new Uint8Array([0x18])

/** The last report of a row. */
export interface RowReport {
  /** Empty for nothing. */
  readonly text: string
  /** When it was reported, or when text was first seen in the row; ms, null for never. */
  readonly at: number | null
  /** Whether it is a question that was asked. */
  readonly asked: boolean
}

/** A row of a screen, and what was reported of it. */
export class Row {
  text = ''
  /** Whether it continues the row above, which was full. */
  continues = false
  reported: RowReport = { text: '', at: null, asked: false }
  /** The text at the last scan. */
  lastText = ''
  /** When that text was first seen, ms. */
  lastChange = 0
}

/**
 * Receives a row that scrolls off the screen. It no longer changes.
 *
 * @param next whether the row below continues it
 */
type ScrollListener = (row: Row, next: boolean) => void

/**
 * The screen of a program on a terminal: rows of text, as far as they can still change. A terminal emulator draws it
 * (xterm.js without its display). It never answers what a program asks of its terminal.
 */
export class Screen {
  readonly #terminal: Terminal
  #listener: ScrollListener = () => {}
  #rows: Row[]
  /** Rows of the alternate screen, which full-screen programs use; null while it is not shown. */
  #alternate: Row[] | null = null
  /** Rows of the main screen that scroll, `end` exclusive. */
  #region: { start: number; end: number }
  #bytesSinceMove = 0

  /** Loads the emulator and makes a screen. */
  static async open(columns: number, rows: number): Promise<Screen> {
    return new Screen(await openEmulator({ columns, rows, scrollback: SCROLLBACK }))
  }

  private constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#rows = this.#emptyRows()
    this.#region = { start: 0, end: terminal.rows }
    terminal.onScroll(() => this.#handleScroll())
    terminal.onCursorMove(() => {
      this.#bytesSinceMove = 0
    })
    terminal.buffer.onBufferChange(({ type }) => {
      this.#alternate = type === 'alternate' ? this.#emptyRows() : null
    })
    this.#registerHandlers()
  }

  /** Sets the listener for rows that scroll off. There is only one. */
  onScroll(listener: ScrollListener): void {
    this.#listener = listener
  }

  /** Draws the next bytes; resolves when that is done. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_BYTES)
      this.#bytesSinceMove += piece.length
      await this.#draw(piece)
      if (this.#bytesSinceMove < MAX_STRING) continue
      this.#bytesSinceMove = 0
      await this.#draw(CANCEL)
    }
  }

  /** Returns the current rows from the top down. */
  get rows(): readonly Row[] {
    const rows = this.#visibleRows
    for (const [index, row] of rows.entries()) this.#read(row, index)
    return rows
  }

  /** Returns the cursor's row if the cursor is not at its start, so that its line may continue; else null. */
  get cursorRow(): Row | null {
    const { cursorX, cursorY } = this.#terminal.buffer.active
    return cursorX > 0 ? (this.#visibleRows[cursorY] ?? null) : null
  }

  /** Disposes of the emulator. */
  close(): void {
    this.#terminal.dispose()
  }

  get #visibleRows(): Row[] {
    return this.#alternate ?? this.#rows
  }

  #emptyRows(): Row[] {
    return Array.from({ length: this.#terminal.rows }, () => new Row())
  }

  #draw(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#terminal.write(bytes, resolve))
  }

  /** @param index from the top of the screen; the row above it, which has just left, is -1 */
  #lineAt(index: number): IBufferLine | undefined {
    const { active } = this.#terminal.buffer
    return active.getLine(active.baseY + index)
  }

  #read(row: Row, index: number): void {
    const line = this.#lineAt(index)
    row.text = line?.translateToString(true) ?? ''
    row.continues = line?.isWrapped ?? false
  }

  #registerHandlers(): void {
    const { parser } = this.#terminal
    const whole = (): boolean => {
      this.#region = { start: 0, end: this.#terminal.rows }
      return false
    }
    parser.registerEscHandler({ final: 'c' }, whole)
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, whole)
    parser.registerCsiHandler({ final: 'r' }, ([first, last]) => {
      this.#setRegion(parameterValue(first), parameterValue(last))
      return false
    })
    // These move rows out at the top as a line feed does, and the emulator does not say so.
    parser.registerCsiHandler({ final: 'S' }, ([count]) => {
      this.#scrollOut(parameterValue(count))
      return false
    })
    parser.registerCsiHandler({ final: 'M' }, ([count]) => {
      if (this.#terminal.buffer.active.cursorY === 0) this.#scrollOut(parameterValue(count))
      return false
    })
  }

  #setRegion(first: number, last: number): void {
    if (this.#alternate !== null) return
    const start = Math.max(first, 1) - 1
    const end = last === 0 || last > this.#terminal.rows ? this.#terminal.rows : last
    if (end - start > 1) this.#region = { start, end }
  }

  /** Handles a scroll of the emulator by one row. */
  #handleScroll(): void {
    if (this.#alternate !== null || this.#region.start > 0 || this.#lineAt(-1) === undefined) return
    const row = this.#shiftRow()
    this.#read(row, -1)
    this.#listener(row, this.#lineAt(0)?.isWrapped ?? false)
  }

  /** Handles `count` rows that are about to scroll off. */
  #scrollOut(count: number): void {
    const { start, end } = this.#region
    if (this.#alternate !== null || start > 0) return
    for (let index = 0; index < Math.min(Math.max(count, 1), end); index += 1) {
      const row = this.#shiftRow()
      this.#read(row, index)
      this.#listener(row, this.#lineAt(index + 1)?.isWrapped ?? false)
    }
  }

  /** Removes the first row and adds an empty one at the end of the region. */
  #shiftRow(): Row {
    const row = this.#rows.shift() ?? new Row()
    this.#rows.splice(this.#region.end - 1, 0, new Row())
    return row
  }
}
