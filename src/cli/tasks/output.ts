import { PlainText, plain } from '../plain-text.ts'
import type { Lines } from './lines.ts'

/** Characters of the end of what was shown that are remembered, to find it again in the whole. */
const REMEMBERED = 256

/** A text that comes in pieces and then whole: what of it was shown is not shown again. */
export class Output {
  readonly #lines: Lines
  readonly #writer: string
  readonly #gutter: string
  readonly #text = new PlainText()
  /** How much of it was shown, or passed over. */
  #shown = 0
  /** The end of that. */
  #end = ''

  constructor(lines: Lines, writer: string, gutter: string) {
    this.#lines = lines
    this.#writer = writer
    this.#gutter = gutter
  }

  /** Shows a piece that begins after so many characters. */
  async piece(offset: number, text: string): Promise<void> {
    const missing = offset - this.#shown
    if (missing > 0) {
      this.#shown = offset
      await this.#note(`${missing} characters that came before are not shown`)
    }
    await this.#add(text.slice(this.#shown - offset))
  }

  /**
   * Shows what is left of the whole text, and ends its line.
   *
   * @param isCut the middle of it was left out
   */
  async whole(text: string, isCut: boolean): Promise<void> {
    if (isCut && this.#shown > 0) await this.#endOf(text)
    else if (text.slice(0, this.#shown).endsWith(this.#end)) await this.#add(text.slice(this.#shown))
    else if (text.trim() !== '' && !text.endsWith(this.#end.trim())) {
      // What was said in the end is not how it began.
      await this.#lines.end()
      await this.#add(text)
    }
    await this.#lines.add(this.#writer, this.#text.end(), this.#gutter)
    if (this.#lines.isOpen(this.#writer)) await this.#lines.end()
  }

  async #endOf(text: string): Promise<void> {
    if (text.endsWith(this.#end)) return
    await this.#note('not all of it is shown; its end:')
    // As much is kept of the end as of the beginning, with a line between that says what is left out.
    const end = text.slice(Math.ceil(text.length / 2))
    await this.#add(end.slice(end.indexOf('\n') + 1))
  }

  async #add(text: string): Promise<void> {
    if (text === '') return
    this.#shown += text.length
    this.#end = (this.#end + text).slice(-REMEMBERED)
    await this.#lines.add(this.#writer, this.#text.push(text), this.#gutter)
  }

  #note(text: string): Promise<void> {
    return this.#lines.add(`${this.#writer} note`, plain(`… ${text}\n`), this.#gutter)
  }
}
