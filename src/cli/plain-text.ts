import { printable } from './output.ts'

const ESC = '\\u001b'

/**
 * Matches a complete escape sequence of a terminal (ECMA-48): CSI, OSC, DCS and similar ones, or a short one. None
 * continues after a line's end.
 */
const ESCAPE = new RegExp(
  [
    `${ESC}\\[[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^\\u0007${ESC}\\n]*(?:\\u0007|${ESC}\\\\)`,
    `${ESC}[PX^_][^${ESC}\\n]*${ESC}\\\\`,
    `${ESC}[ -/]*[0-OQ-WYZ\\\\\`-~]`,
  ].join('|'),
  'g',
)

/** Matches the beginning of a sequence, or of a line's end, at the end of a text. */
const INCOMPLETE_ESCAPE = new RegExp(
  `(?:${ESC}(?:\\[[0-?]*[ -/]*|\\][^\\u0007${ESC}\\n]*${ESC}?|[PX^_][^${ESC}\\n]*${ESC}?|[ -/]*)|\\r+)$`,
)

/** Largest number of characters to hold back for an incomplete sequence. @bound program */
const LONGEST_ESCAPE = 4_096

/**
 * Makes untrusted text safe for a terminal. Keeps lines, removes colours and other escape sequences, and replaces
 * other control characters by `�`. Splits a line that a program has overwritten into several.
 */
export const toPlainText = (text: string): string =>
  text
    .replace(ESCAPE, '')
    .replace(/\r+\n?/g, '\n')
    .replaceAll('\t', '    ')
    .split('\n')
    .map(printable)
    .join('\n')

/** Does the same for text in pieces, which may split a sequence. */
export class PlainTextStream {
  #held = ''

  /** Takes the next piece. Returns the text that cannot change any more. */
  push(piece: string): string {
    const text = this.#held + piece
    const end = text.slice(-LONGEST_ESCAPE)
    const begun = INCOMPLETE_ESCAPE.exec(end)?.index ?? end.length
    const sure = text.length - end.length + begun
    this.#held = text.slice(sure)
    return toPlainText(text.slice(0, sure))
  }

  /** Ends the text. Returns the rest. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return toPlainText(rest)
  }
}
