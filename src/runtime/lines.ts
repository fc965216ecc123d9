import { firstCharacters } from './characters.ts'
import type { MaskStream, Masks } from './masks.ts'

/** Characters of a line that are kept; the rest of it is cut off. @bound program */
export const LONGEST_LINE = 16 * 1024

/**
 * Lines and characters that are taken in a second; a program that prints more would keep berth busy with nothing
 * else.
 */
const LINES_A_SECOND = 5000
const CHARACTERS_A_SECOND = 4 * 2 ** 20

/** How long a program that prints more is held up for each piece, ms. */
const HOLD_UP_MS = 20

/** Number of last dropped lines to keep: they tell why a program ended. */
const KEPT_OF_DROPPED = 50

/** Milliseconds without output after which an unfinished line is shown, and the last of dropped ones. */
const QUIET_MS = 200

/** The options of a `LineStream`. */
interface LineOptions {
  masks: Masks
  /** Receives each line, masked and clean. */
  onLine(text: string): void
  /** Receives berth's notes about the lines. */
  onNote(text: string): void
}

/**
 * Cuts one stream of a program's output into lines: characters and secrets that are split over pieces are put
 * together, colours and other control characters left out.
 */
export class LineStream {
  readonly #options: LineOptions
  readonly #decoder = new TextDecoder()
  readonly #mask: MaskStream
  #line = ''
  #cut = false
  /** Whether the beginning of the unfinished line was shown already. */
  #shown = false
  #timer: Timer | undefined
  #second = { from: 0, lines: 0, characters: 0 }
  #dropped = 0
  #lastDropped: string[] = []

  constructor(options: LineOptions) {
    this.#options = options
    this.#mask = options.masks.stream()
  }

  /** Accepts the next bytes; wait for the returned promise before passing more. */
  write(bytes: Uint8Array): void | Promise<void> {
    clearTimeout(this.#timer)
    const before = this.#dropped
    this.#take(this.#mask.push(this.#decoder.decode(bytes, { stream: true })))
    this.#timer = setTimeout(() => this.#showUnfinished(), QUIET_MS)
    this.#timer.unref()
    if (this.#dropped > before) return Bun.sleep(HOLD_UP_MS)
  }

  /** Shows what is left, after the end of the output. */
  end(): void {
    clearTimeout(this.#timer)
    this.#take(this.#mask.push(this.#decoder.decode()))
    this.#take(this.#mask.flush())
    if (this.#line !== '') this.#finish()
    this.#showLastDropped()
  }

  #take(text: string): void {
    let at = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', at)) {
      this.#append(text.slice(at, end))
      this.#finish()
      at = end + 1
    }
    this.#append(text.slice(at))
  }

  #append(text: string): void {
    const room = LONGEST_LINE - this.#line.length
    if (!this.#cut) this.#line += firstCharacters(text, room)
    if (text.length > room) this.#cut = true
  }

  #finish(): void {
    const line = this.#cut ? `${this.#line} … (the rest of the line is left out)` : this.#line
    const rest = this.#shown && line === ''
    this.#line = ''
    this.#cut = false
    this.#shown = false
    // The line's beginning is already in the log.
    if (rest) return
    if (this.#isTooMuch(line.length)) this.#drop(line)
    else this.#show(line)
  }

  #isTooMuch(characters: number): boolean {
    const now = performance.now()
    if (now - this.#second.from >= 1000) {
      this.#second = { from: now, lines: 0, characters: 0 }
      if (this.#dropped > 0) this.#note(this.#dropped)
      this.#dropped = 0
      this.#lastDropped = []
    }
    this.#second.lines += 1
    this.#second.characters += characters
    return this.#second.lines > LINES_A_SECOND || this.#second.characters > CHARACTERS_A_SECOND
  }

  #drop(line: string): void {
    this.#dropped += 1
    this.#lastDropped.push(line)
    if (this.#lastDropped.length > KEPT_OF_DROPPED) this.#lastDropped.shift()
  }

  #note(lines: number): void {
    if (lines > 0) this.#options.onNote(`${lines} lines are left out here: more came than a log can take.`)
  }

  /** Shows the last of the lines that were dropped since the last note. */
  #showLastDropped(): void {
    const last = this.#lastDropped
    this.#note(this.#dropped - last.length)
    this.#dropped = 0
    this.#lastDropped = []
    for (const line of last) this.#show(line)
  }

  #showUnfinished(): void {
    // After a pause nothing may follow for long.
    this.#showLastDropped()
    this.#take(this.#mask.flush())
    if (this.#line === '') return
    this.#show(this.#line)
    this.#line = ''
    this.#shown = true
  }

  #show(line: string): void {
    const clean = cleanLine(line)
    // Removing control characters may have joined the parts of a secret.
    this.#options.onLine(clean === line ? line : this.#options.masks.mask(clean))
  }
}

/** Returns a line as a person sees it: without overwritten text, colours and control characters. */
export function cleanLine(line: string): string {
  const visible = line.replace(/\r+$/, '')
  const last = visible.slice(visible.lastIndexOf('\r') + 1)
  if (!UNCLEAN.test(last)) return last
  return Bun.stripANSI(last).replace(CONTROL, '')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const UNCLEAN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/
