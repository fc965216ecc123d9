/** Stands after a character that takes two columns, so that a row's columns are the characters of a string. */
export const FILLER = '\u0000'

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is taken out again.
const FILLERS = /\u0000/g

const ASCII = /^[ -~]*$/

/** What was told of a row. */
export interface Told {
  /** Empty for nothing. */
  readonly text: string
  /** When that was, or when something was first seen in the row; ms, null for never. */
  readonly at: number | null
  /** Whether it is a question that was asked. */
  readonly asked: boolean
}

/** One row of a screen, and what of it has been told already. */
export class Row {
  /** What stands there; columns are characters. */
  #cells = ''
  /** Whether it goes on the row above, which was full. */
  continues = false
  /** What was told of it last. */
  told: Told = { text: '', at: null, asked: false }
  /** What stood there when it was looked at last. */
  seen = ''
  /** Since when that stands there, ms. */
  seenSince = 0

  /** What stands there, for a person. */
  get text(): string {
    const text = this.#cells.trimEnd()
    return text.includes(FILLER) ? text.replace(FILLERS, '') : text
  }

  /** Writes over what stands from a column on. */
  write(column: number, cells: string): void {
    const before = this.#cells
    const padded = before.length < column ? before.padEnd(column) : before.slice(0, column)
    this.#cells = padded + cells + before.slice(column + cells.length)
  }

  /** Empties columns, `to` exclusive. */
  erase(from: number, to: number): void {
    if (to >= this.#cells.length) this.#cells = this.#cells.slice(0, from)
    else this.write(from, ' '.repeat(Math.max(to - from, 0)))
  }

  /** Makes room at a column; what leaves the row on the right is lost. */
  insert(column: number, count: number, columns: number): void {
    const cells = this.#cells.padEnd(column)
    this.#cells = (cells.slice(0, column) + ' '.repeat(count) + cells.slice(column)).slice(0, columns)
  }

  /** Takes characters out; what stands behind them moves up. */
  delete(column: number, count: number): void {
    this.#cells = this.#cells.slice(0, column) + this.#cells.slice(column + count)
  }
}

/** A text as columns of a row. */
export function cellsOf(text: string): string {
  if (ASCII.test(text)) return text
  let cells = ''
  for (const character of text) {
    cells += character.length === 1 && Bun.stringWidth(character) === 2 ? character + FILLER : character
  }
  return cells
}
