/** The colours and weights of text on a terminal (ECMA-48, SGR). */
export const STYLE_CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

/** Controls, separators of lines, and what overrides the direction of text (UAX #9). */
const CONTROLS = '\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069'

/** Matches each of them. */
export const CONTROL = new RegExp(`[${CONTROLS}]`, 'gu')

/** Clears the line of a terminal and leaves the cursor at its beginning. */
export const CLEAR_LINE = '\r\u001b[K'

/** Matches what commands write to a terminal beside text, or any control. */
const OWN_OR_CONTROL = new RegExp(
  `(\\u001b\\[(?:0|${Object.values(STYLE_CODES).join('|')})m|\\r\\u001b\\[K|\\r?\\n|\\t)|[${CONTROLS}]`,
  'gu',
)

/**
 * Returns a text as a terminal may get it: lines, and the colours and cleared lines of commands. Whatever else is in it came
 * from elsewhere, and past `printable`.
 */
export const forTerminal = (text: string): string =>
  text.replace(OWN_OR_CONTROL, (_, own: string | undefined) => own ?? '�')
