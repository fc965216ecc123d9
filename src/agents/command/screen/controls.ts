/** Who acts on what a program writes to a terminal. */
export interface ControlHandler {
  /** Characters to show. */
  print(text: string): void
  /** A control character, such as a line feed. */
  control(character: string): void
  /**
   * A control sequence, ECMA-48 section 5.4: `ESC [ ?25 h` has the marker `?`, the parameters 25 and the final `h`.
   * Parameters that are left out are 0.
   */
  sequence(marker: string, parameters: readonly number[], final: string): void
  /** An escape sequence of one character, such as `ESC M`. */
  escape(final: string): void
}

/** Characters of a sequence that are looked at; what is longer means nothing. */
const LONGEST_SEQUENCE = 256

/** Characters of a string, such as a title or a picture, after which its end is no longer waited for. */
const LONGEST_STRING = 4 * 2 ** 20

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const PRINTABLE = /[^\u0000-\u001f\u007f-\u009f]+/y

const ESCAPE = '\u001b'
const CSI = '\u009b'
/** Beginnings of strings, with 7 and 8 bits: DCS, SOS, OSC, PM, APC. */
const STRINGS_7 = 'PX]^_'
const STRINGS_8 = '\u0090\u0098\u009d\u009e\u009f'
/** Ends of strings: BEL, ST; CAN and SUB end any sequence. */
const BEL = '\u0007'
const ST = '\u009c'
const CANCEL = '\u0018\u001a'

type State = 'ground' | 'escape' | 'designate' | 'sequence' | 'string' | 'stringEscape'

/** Takes apart what a program writes to a terminal; sequences may be cut anywhere into pieces. */
export class ControlReader {
  readonly #handler: ControlHandler
  #state: State = 'ground'
  #collected = ''
  #skipped = 0

  constructor(handler: ControlHandler) {
    this.#handler = handler
  }

  /** Takes the next piece. */
  push(text: string): void {
    for (let at = 0; at < text.length; ) {
      if (this.#state === 'ground') {
        PRINTABLE.lastIndex = at
        const [run] = PRINTABLE.exec(text) ?? []
        if (run !== undefined) {
          this.#handler.print(run)
          at += run.length
          continue
        }
      }
      this.#take(text.charAt(at))
      at += 1
    }
  }

  #take(character: string): void {
    if (CANCEL.includes(character)) this.#state = 'ground'
    else if (this.#state === 'string' || this.#state === 'stringEscape') this.#takeOfString(character)
    else if (character === ESCAPE) this.#state = 'escape'
    else if (this.#state === 'escape') this.#takeOfEscape(character)
    else if (this.#state === 'sequence') this.#takeOfSequence(character)
    else if (this.#state === 'designate') this.#state = 'ground'
    else if (character === CSI) this.#begin('sequence')
    else if (STRINGS_8.includes(character)) this.#begin('string')
    else this.#handler.control(character)
  }

  #begin(state: 'sequence' | 'string'): void {
    this.#state = state
    this.#collected = ''
    this.#skipped = 0
  }

  #takeOfEscape(character: string): void {
    if (character === '[') this.#begin('sequence')
    else if (STRINGS_7.includes(character)) this.#begin('string')
    // Character sets and the like have one character more.
    else if (character >= ' ' && character <= '/') this.#state = 'designate'
    else {
      this.#state = 'ground'
      if (character < ' ') this.#handler.control(character)
      else this.#handler.escape(character)
    }
  }

  #takeOfSequence(character: string): void {
    if (character < ' ') this.#handler.control(character)
    else if (character >= '@') this.#endSequence(character)
    else if (this.#collected.length < LONGEST_SEQUENCE) this.#collected += character
  }

  #endSequence(final: string): void {
    this.#state = 'ground'
    const [, marker = '', numbers = '', intermediate = ''] = /^([<-?]?)([\d;:]*)([ -/]*)$/.exec(
      this.#collected,
    ) ?? [null, '', '', 'none']
    // Those with characters in between, such as the shape of the cursor, move nothing.
    if (intermediate !== '') return
    this.#handler.sequence(marker, numbers.split(';').map(parameter), final)
  }

  #takeOfString(character: string): void {
    this.#skipped += 1
    const isOver = character === BEL || character === ST || this.#skipped > LONGEST_STRING
    if (isOver) this.#state = 'ground'
    else if (this.#state === 'stringEscape') {
      // ESC \ ends it; any other escape does too, and is one itself.
      this.#state = 'escape'
      if (character === '\\') this.#state = 'ground'
      else this.#takeOfEscape(character)
    } else if (character === ESCAPE) this.#state = 'stringEscape'
  }
}

const parameter = (digits: string): number => Math.min(Number.parseInt(digits, 10) || 0, 100_000)
