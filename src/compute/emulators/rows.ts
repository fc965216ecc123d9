import type { IBufferLine, Terminal } from '@xterm/headless'
import { parameterValue } from '../../runtime/bounded-emulator.ts'

/** A row of a screen. */
interface RowText {
  readonly text: string
  /** Whether it continues the row above, which was full. */
  readonly continues: boolean
}

/** Something that has happened to the rows of a screen. */
export type RowEvent =
  /** The first row has left the screen, and an empty one was added before row `end`, counted from 0. */
  | (RowText & {
      readonly kind: 'left'
      /** Whether the row below continues it. */
      readonly next: boolean
      readonly end: number
    })
  /** Another screen is shown: the alternate one, which full-screen programs use, or the main one. */
  | { readonly kind: 'screen'; readonly isAlternate: boolean }

/** The rows of a screen from the top down, and the place of the cursor. */
export interface ScreenRows {
  readonly rows: readonly RowText[]
  readonly cursor: { readonly row: number; readonly column: number }
}

/** Returns the rows of the screen that a terminal shows. */
export function readRows(terminal: Terminal): ScreenRows {
  const { active } = terminal.buffer
  return {
    rows: Array.from({ length: terminal.rows }, (_, row) => textOf(active.getLine(active.baseY + row))),
    cursor: { row: active.cursorY, column: active.cursorX },
  }
}

/** Follows the rows that leave the main screen of a terminal at its top. Each is read as it leaves. */
export class LeavingRows {
  readonly #terminal: Terminal
  #events: RowEvent[]
  /** Rows of the main screen that scroll, `end` exclusive. */
  #region: { start: number; end: number }

  /** @param events what has happened before, on a terminal that this one replaces */
  constructor(terminal: Terminal, events: RowEvent[]) {
    this.#terminal = terminal
    this.#events = events
    this.#region = { start: 0, end: terminal.rows }
    terminal.onScroll(() => this.#handleScroll())
    terminal.buffer.onBufferChange(() => this.#noteScreen())
    this.#registerHandlers()
    this.#noteScreen()
  }

  /** Returns what has happened since the last call. */
  take(): RowEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  get #isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate'
  }

  #noteScreen(): void {
    this.#events.push({ kind: 'screen', isAlternate: this.#isAlternate })
  }

  /** @param index from the top of the screen; the row above it, which has just left, is -1 */
  #lineAt(index: number): IBufferLine | undefined {
    const { active } = this.#terminal.buffer
    return active.getLine(active.baseY + index)
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
    if (this.#isAlternate) return
    const start = Math.max(first, 1) - 1
    const end = last === 0 || last > this.#terminal.rows ? this.#terminal.rows : last
    if (end - start > 1) this.#region = { start, end }
  }

  /** Handles a scroll of the emulator by one row. */
  #handleScroll(): void {
    const line = this.#lineAt(-1)
    if (this.#isAlternate || this.#region.start > 0 || line === undefined) return
    this.#leave(line, this.#lineAt(0))
  }

  /** Handles `count` rows that are about to scroll off. */
  #scrollOut(count: number): void {
    const { start, end } = this.#region
    if (this.#isAlternate || start > 0) return
    for (let index = 0; index < Math.min(Math.max(count, 1), end); index += 1)
      this.#leave(this.#lineAt(index), this.#lineAt(index + 1))
  }

  #leave(line: IBufferLine | undefined, below: IBufferLine | undefined): void {
    this.#events.push({
      kind: 'left',
      ...textOf(line),
      next: below?.isWrapped ?? false,
      end: this.#region.end,
    })
  }
}

const textOf = (line: IBufferLine | undefined): RowText => ({
  text: line?.translateToString(true) ?? '',
  continues: line?.isWrapped ?? false,
})
