import { printable } from './output.ts'

const ESC = '\\u001b'

/** A whole escape sequence of a terminal (ECMA-48): CSI, OSC, DCS and its like, or a short one. None goes over a line's end. */
const ESCAPE = new RegExp(
  [
    `${ESC}\\[[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^\\u0007${ESC}\\n]*(?:\\u0007|${ESC}\\\\)`,
    `${ESC}[PX^_][^${ESC}\\n]*${ESC}\\\\`,
    `${ESC}[ -/]*[0-OQ-WYZ\\\\\`-~]`,
  ].join('|'),
  'g',
)

/** The beginning of one, or of a line's end, at the end of a text. */
const INCOMPLETE_ESCAPE = new RegExp(
  `(?:${ESC}(?:\\[[0-?]*[ -/]*|\\][^\\u0007${ESC}\\n]*${ESC}?|[PX^_][^${ESC}\\n]*${ESC}?|[ -/]*)|\\r+)$`,
)

/** Characters that are waited for at most until a sequence is whole. */
const LONGEST_ESCAPE = 4_096

/**
 * Text that anybody may have written, for a terminal: lines stay lines, colours and whatever else steers a terminal go,
 * and control characters that are left show as `�`. A line that a program wrote over itself shows as several.
 */
export const toPlainText = (text: string): string =>
  text
    .replace(ESCAPE, '')
    .replace(/\r+\n?/g, '\n')
    .replaceAll('\t', '    ')
    .split('\n')
    .map(printable)
    .join('\n')

/** The same for text in pieces, which may cut a sequence in two. */
export class PlainTextStream {
  #held = ''

  /** Takes the next piece; returns what is sure by now. */
  push(piece: string): string {
    const text = this.#held + piece
    const end = text.slice(-LONGEST_ESCAPE)
    const begun = INCOMPLETE_ESCAPE.exec(end)?.index ?? end.length
    const sure = text.length - end.length + begun
    this.#held = text.slice(sure)
    return toPlainText(text.slice(0, sure))
  }

  /** Ends the text; returns what was held back. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return toPlainText(rest)
  }
}
