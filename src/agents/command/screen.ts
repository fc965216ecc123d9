import type { Emulator, Emulators, RowEvent } from '../../compute/emulators/emulators.ts'
import type { TerminalSize } from '../../compute/sandbox.ts'

/** Rows above the screen that the emulator keeps. One would do: each is read as it leaves. */
const SCROLLBACK = 10

/** Bytes that are drawn at a time: a few may have a whole screen of rows leave. */
const CHUNK_BYTES = 4 * 1024

/** The last report of a row. */
export interface RowReport {
  /** Empty for nothing. */
  readonly text: string
  /** When it was reported, or when text was first seen in the row; ms, null for never. */
  readonly at: number | null
  /** Whether it is a question that was asked. */
  readonly asked: boolean
}

/** A row of a screen, and its reported part. */
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
 * The screen of a program on a terminal: rows of text, as far as they can still change. An emulator draws it. Nothing
 * responds to queries of the program to its terminal.
 */
export class Screen {
  readonly #emulator: Emulator
  readonly #size: TerminalSize
  readonly #onScroll: ScrollListener
  #rows: Row[]
  /** Rows of the alternate screen, which full-screen programs use; null while it is not shown. */
  #alternate: Row[] | null = null
  #cursor = { row: 0, column: 0 }
  /** Resolves when all that was written is drawn. */
  #drawn: Promise<void> = Promise.resolve()

  /** @param onScroll receives the rows that scroll off */
  constructor(emulators: Emulators, size: TerminalSize, onScroll: ScrollListener) {
    this.#emulator = emulators.open({ ...size, scrollback: SCROLLBACK }, { followsRows: true })
    this.#size = size
    this.#onScroll = onScroll
    this.#rows = this.#emptyRows()
  }

  /** Draws the next bytes; resolves when that is done. */
  write(bytes: Uint8Array): Promise<void> {
    this.#drawn = this.#drawn.then(async () => {
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        // A copy, which the emulator takes over. To slice a Buffer copies nothing.
        const piece = new Uint8Array(bytes.subarray(at, at + CHUNK_BYTES))
        const result = await this.#emulator.write(piece)
        for (const event of result?.rowEvents ?? []) this.#handle(event)
      }
    })
    return this.#drawn
  }

  /** Reads the rows and the cursor, when all that was written before is drawn. */
  async read(): Promise<void> {
    await this.#drawn
    const screen = await this.#emulator.rows()
    if (screen === null) return
    this.#cursor = screen.cursor
    for (const [index, row] of this.rows.entries()) {
      const { text = '', continues = false } = screen.rows[index] ?? {}
      row.text = text
      row.continues = continues
    }
  }

  /** The rows from the top down, as they were last read. */
  get rows(): readonly Row[] {
    return this.#alternate ?? this.#rows
  }

  /** The cursor's row if the cursor is not at its start, so that its line may continue; else null. */
  get cursorRow(): Row | null {
    return this.#cursor.column > 0 ? (this.rows[this.#cursor.row] ?? null) : null
  }

  /** Frees the emulator. */
  close(): void {
    this.#emulator.close()
  }

  #emptyRows(): Row[] {
    return Array.from({ length: this.#size.rows }, () => new Row())
  }

  #handle(event: RowEvent): void {
    if (event.kind === 'screen') {
      if (!event.isAlternate) this.#alternate = null
      else this.#alternate ??= this.#emptyRows()
      return
    }
    const row = this.#rows.shift() ?? new Row()
    this.#rows.splice(event.end - 1, 0, new Row())
    row.text = event.text
    row.continues = event.continues
    this.#onScroll(row, event.next)
  }
}
