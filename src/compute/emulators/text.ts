import type { IBuffer, Terminal } from '@xterm/headless'
import { cursorIsHidden } from './state.ts'

/** A screen as plain text. */
export interface ScreenText {
  /** Its rows, without blanks at their ends, but for those before the cursor. */
  readonly rows: readonly string[]
  /** The rows above it that were asked for. */
  readonly scrollback: readonly string[]
  /** Row and column of the cursor, from 0. */
  readonly cursor: { readonly row: number; readonly column: number; readonly visible: boolean }
  readonly title: string
  /** Whether a program has the whole screen to itself, as vim and less have it. */
  readonly isAlternate: boolean
}

/** Returns the screen of a terminal, with its last `lines` rows of scrollback. */
export function readScreen(terminal: Terminal, title: string, lines: number): ScreenText {
  const { active, normal } = terminal.buffer
  const above = Math.min(lines, normal.baseY)
  return {
    rows: Array.from({ length: terminal.rows }, (_, row) => rowText(active, active.baseY + row)),
    scrollback: Array.from({ length: above }, (_, row) => rowText(normal, normal.baseY - above + row)),
    cursor: { row: active.cursorY, column: active.cursorX, visible: !cursorIsHidden(terminal) },
    title,
    isAlternate: active.type === 'alternate',
  }
}

/**
 * Returns a row as text, without blanks at its end. Those before the cursor stay: a prompt ends with one.
 *
 * @param row counted from the top of the scrollback
 */
export function rowText(buffer: IBuffer, row: number): string {
  const text = buffer.getLine(row)?.translateToString(true) ?? ''
  const trimmed = text.trimEnd()
  if (row !== buffer.baseY + buffer.cursorY) return trimmed
  const before = buffer.getLine(row)?.translateToString(false, 0, buffer.cursorX) ?? ''
  return before.length > trimmed.length ? before : trimmed
}
