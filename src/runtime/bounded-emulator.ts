import type { ITerminalAddon, IUnicodeVersionProvider, Terminal } from '@xterm/headless'
import { type BufferLine, coreOf, FIRST_STRING_STATE, GROUND, OSC_STRING_STATE } from './emulator-core.ts'

/**
 * Sequences that the emulator carries out step by step, and whether more steps than the screen has rows (or columns)
 * change nothing.
 */
const STEPPED_SEQUENCES: Readonly<Record<string, 'rows' | 'columns' | 'cells'>> = {
  L: 'rows',
  M: 'rows',
  S: 'rows',
  T: 'rows',
  I: 'columns',
  Z: 'columns',
  b: 'cells',
}

/** Most repetitions of a character by one sequence. @bound program */
const MAX_REPEATED = 10_000

/** Milliseconds of drawing after which everything else has its turn. */
const SLICE_MS = 8

/** Most bytes that are drawn between two looks at the time. */
const PIECE_BYTES = 256

/** Cells that a piece may clear or move: with a larger screen it has fewer bytes. */
const PIECE_CELLS = 7_000_000

/** Longest string, such as a title or a picture, in bytes. The rest of a longer one is left out. @bound program */
const MAX_STRING = 4 * 1024

/** Bytes of a string that are left out before what follows is shown: nobody ends it. @bound program */
const MAX_LEFT_OUT = 4 * 2 ** 20

/**
 * Combining characters that one cell takes; the others get cells of their own. A cell has no bound by itself.
 * @bound program
 */
const MAX_COMBINING = 16

/** Combining characters after which the cells that have some are looked through: until then each takes about 90 bytes. */
const COMBINED_BETWEEN = 100_000

/** Most different texts of cells that hold more than one character. Equal ones are kept once. @bound program */
const MAX_CLUSTERS = 10_000

const BEL = 0x07
const CAN = 0x18
const SUB = 0x1a
const ESC = 0x1b
/** The first byte in UTF-8 of the control characters U+0080 to U+009F, which end strings and begin sequences too. */
const C1_LEAD = 0xc2

/** What is bounded of an emulator: xterm.js without its display, or with it in a browser. */
type AnyEmulator = Pick<Terminal, 'parser' | 'unicode' | 'write' | 'reset' | 'cols' | 'rows'>

/** An error of the emulator itself. It is then in no state to go on. */
interface EmulatorFault {
  readonly error: unknown
  /** Where the piece begins at which it has failed, and where it ends. */
  readonly from: number
  readonly to: number
}

/**
 * An emulator that no program can keep busy for long, or fill memory with. Output is to be drawn by `draw` only, which
 * lets everything else have its turn, and keeps errors of the emulator from ending the process.
 */
export class BoundedEmulator<Emulator extends AnyEmulator = Terminal> {
  readonly terminal: Emulator
  /** Combining characters since the last look at the cells that have some. */
  #combined = 0
  /** Bytes of the string that is under way. */
  #string = 0
  /** Bytes of a string that were left out so far, and whether BEL ends it; null if none is being left out. */
  #leftOut: { bytes: number; endsWithBell: boolean } | null = null
  #isStopped = false
  /** Whether the last byte that was left out may begin a control character. */
  #sawLead = false

  /** @param widths the addon with the widths of characters to use */
  constructor(terminal: Emulator, widths: ITerminalAddon) {
    this.terminal = terminal
    // The addon uses nothing else of a terminal.
    const unicode = { register: (version: IUnicodeVersionProvider) => this.#useWidths(version) }
    widths.activate({ unicode } as never)
    this.#boundSteps()
    this.#eraseAboveLastRow()
  }

  /** Whether a sequence or a string is under way. */
  get isInSequence(): boolean {
    return this.#leftOut !== null || coreOf(this.terminal)._inputHandler._parser.currentState !== GROUND
  }

  /**
   * Draws bytes, after which nothing else may be drawn until the promise resolves.
   *
   * @param single how many bytes at the beginning are drawn one at a time, to find at which the emulator fails
   * @returns where the emulator failed; null if all is drawn
   */
  async draw(data: Uint8Array, single = 0): Promise<EmulatorFault | null> {
    const { _inputHandler: handler } = coreOf(this.terminal)
    let begun = performance.now()
    let nextEscape = -1
    for (let at = 0; at < data.length && !this.#isStopped; ) {
      if (this.#leftOut !== null) at = this.#leaveOut(data, at)
      else {
        if (nextEscape <= at) nextEscape = indexOrEnd(data, ESC, at + 1)
        const end = at < single ? at + 1 : Math.min(at + this.#pieceBytes, nextEscape)
        const piece = data.subarray(at, end)
        try {
          handler.parse(piece)
          this.#boundString(piece.length)
          if (this.#combined >= COMBINED_BETWEEN) this.#shareClusters()
        } catch (error) {
          return { error, from: at, to: end }
        }
        at = end
      }
      if (performance.now() - begun < SLICE_MS) continue
      await nextTurn()
      begun = performance.now()
    }
    return null
  }

  /** Empties the screen, and forgets what is under way. */
  reset(): void {
    this.terminal.reset()
    coreOf(this.terminal)._inputHandler._parser.reset()
    this.#string = 0
    this.#leftOut = null
  }

  /** Draws no more, neither of what is being drawn nor later. */
  stop(): void {
    this.#isStopped = true
  }

  get #pieceBytes(): number {
    const { cols, rows } = this.terminal
    // A character that is inserted moves those of its row.
    const cells = cols * Math.max(rows, 35)
    return Math.max(16, Math.min(PIECE_BYTES, Math.floor(PIECE_CELLS / cells)))
  }

  /** Ends a string that has become too long, whose rest is then left out. */
  #boundString(bytes: number): void {
    const { _inputHandler: handler } = coreOf(this.terminal)
    const { currentState } = handler._parser
    this.#string = currentState >= FIRST_STRING_STATE ? this.#string + bytes : 0
    if (this.#string < MAX_STRING) return
    this.#string = 0
    this.#sawLead = false
    this.#leftOut = { bytes: 0, endsWithBell: currentState === OSC_STRING_STATE }
    // CAN ends a string, and has it ignored (ECMA-48, section 8.3.6).
    handler.parse(Uint8Array.of(CAN))
  }

  /** Looks for the end of a string. @returns where what follows begins; the end of the bytes if it goes on */
  #leaveOut(data: Uint8Array, from: number): number {
    const { bytes, endsWithBell } = this.#leftOut ?? { bytes: 0, endsWithBell: false }
    const most = Math.min(data.length, from + MAX_LEFT_OUT - bytes)
    for (let at = from; at < most; at += 1) {
      const byte = data[at] ?? 0
      const isControl = this.#sawLead && byte >= 0x80 && byte < 0xa0
      this.#sawLead = byte === C1_LEAD
      const ends = byte === ESC || byte === CAN || byte === SUB || (endsWithBell && byte === BEL)
      if (!ends && !isControl) continue
      this.#leftOut = null
      if (isControl) coreOf(this.terminal)._inputHandler.parse(Uint8Array.of(C1_LEAD))
      return byte === BEL ? at + 1 : at
    }
    const left = bytes + most - from
    this.#leftOut = left < MAX_LEFT_OUT ? { bytes: left, endsWithBell } : null
    return most
  }

  /** Has no sequence take more steps than change something. */
  #boundSteps(): void {
    const { terminal } = this
    const { params } = coreOf(terminal)._inputHandler._parser._params
    for (const [final, unit] of Object.entries(STEPPED_SEQUENCES)) {
      // The handler that was registered last is asked first.
      terminal.parser.registerCsiHandler({ final }, () => {
        const { cols, rows } = terminal
        const most = { rows, columns: cols, cells: Math.min(cols * rows, MAX_REPEATED) }[unit]
        if ((params[0] ?? 0) > most) params[0] = most
        return false
      })
    }
  }

  /**
   * Carries out "erase above" (`CSI 1 J`, `CSI ? 1 J`) where the cursor is in the last column of the last row. The
   * emulator itself fails there if there is no scrollback, because it looks at the row below.
   */
  #eraseAboveLastRow(): void {
    const { terminal } = this
    for (const prefix of ['', '?']) {
      terminal.parser.registerCsiHandler({ prefix, final: 'J' }, ([what]) => {
        const { buffer, _inputHandler: handler } = coreOf(terminal)
        const { x } = buffer
        const isLast = buffer.y >= terminal.rows - 1 && x >= terminal.cols - 1
        if (parameterValue(what) !== 1 || !isLast) return false
        const keepsProtected = prefix === '?'
        buffer.x = terminal.cols - 2
        handler.eraseInDisplay({ params: [1], length: 1 }, keepsProtected)
        buffer.x = terminal.cols - 1
        handler.eraseInLine({ params: [0], length: 1 }, keepsProtected)
        buffer.x = x
        return true
      })
    }
  }

  /** Uses the widths of a version of Unicode, with the bound of combining characters. */
  #useWidths(version: IUnicodeVersionProvider): void {
    const { unicode } = this.terminal
    unicode.register({
      version: version.version,
      wcwidth: (codepoint) => version.wcwidth(codepoint),
      charProperties: (codepoint, preceding) => {
        const properties = version.charProperties(codepoint, preceding)
        if ((properties & JOINS) === 0) return properties
        this.#combined += 1
        const combined = (preceding >> STATE_SHIFT) + 1
        return combined > MAX_COMBINING ? ONE_COLUMN : properties | (combined << STATE_SHIFT)
      },
    })
    unicode.activeVersion = version.version
  }

  /**
   * Has equal texts of cells share one string, from the newest row up. If there are too many different ones, the older
   * cells lose their combining characters.
   */
  #shareClusters(): void {
    this.#combined = 0
    const clusters = new Map<string, string>()
    const share = (text: string): string => {
      const known = clusters.get(text)
      if (known !== undefined) return known
      if (clusters.size >= MAX_CLUSTERS) return String.fromCodePoint(text.codePointAt(0) ?? 0)
      clusters.set(text, text)
      return text
    }
    const { alt, normal } = coreOf(this.terminal).buffers
    for (const { lines } of [alt, normal]) {
      for (let row = lines.length - 1; row >= 0; row -= 1) shareIn(lines.get(row), share)
    }
  }
}

/** Replaces the texts of a row's cells that hold more than one character. */
function shareIn(line: BufferLine | undefined, share: (text: string) => string): void {
  if (line === undefined) return
  for (const key in line._combined) {
    const column = Number(key)
    const text = line._combined[column]
    if (text === undefined || column >= line.length || line.isCombined(column) === 0)
      delete line._combined[column]
    else line._combined[column] = share(text)
  }
}

/** Returns where a byte is, from an index on; the end of the bytes if it is not there. */
function indexOrEnd(bytes: Uint8Array, byte: number, from: number): number {
  const index = bytes.indexOf(byte, from)
  return index === -1 ? bytes.length : index
}

/** Resolves when everything else has had its turn. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0))

/**
 * Parts of xterm.js's character properties: whether the character joins the one before, a width of one column, and the
 * state of the version, which that of Unicode 11 leaves at 0.
 */
const JOINS = 1
const ONE_COLUMN = 1 << 1
const STATE_SHIFT = 3

/** Returns a parameter of a sequence, or 0 if it is missing. */
export const parameterValue = (parameter: number | number[] | undefined): number =>
  typeof parameter === 'number' ? parameter : 0
