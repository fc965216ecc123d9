import type { ITerminalAddon, IUnicodeVersionProvider, Terminal } from '@xterm/headless'

/** Sequences that the emulator carries out step by step, for as many steps as a program names. */
const REPEATING_SEQUENCES = ['L', 'M', 'S', 'T', 'b', 'I', 'Z'] as const

/** Steps that no program means: a sequence with more is ignored. */
const MAX_REPETITIONS = 1_000

/**
 * Steps that the sequences of a program may take: these at first, and one for each byte that it prints. Further sequences
 * are ignored. A step takes as long as a line end, and without a bound seven bytes would take a thousand.
 */
const MOST_STEPS = 20_000

/** Bytes that are drawn before everything else has its turn, if they take long. */
const PIECE_BYTES = 4 * 1024

/** Combining characters that one cell takes; the others get cells of their own. A cell has no bound by itself. */
const MAX_COMBINING = 16

/** Longest title, in characters: a longer one is ignored. */
const MAX_TITLE = 4096

/** Commands of OSC that set titles. */
const TITLES = [0, 1, 2]

/** What is bounded of an emulator: xterm.js without its display, or with it in a browser. */
type BoundedEmulator = Pick<Terminal, 'parser' | 'unicode' | 'write'>

/**
 * Makes an emulator one that no program can keep busy for long, or fill memory with.
 *
 * @param widths the addon with the widths of characters to use
 */
export function boundEmulator(terminal: BoundedEmulator, widths: ITerminalAddon): void {
  // The addon uses nothing else of a terminal.
  const unicode = { register: (version: IUnicodeVersionProvider) => useWidths(terminal, version) }
  widths.activate({ unicode } as never)
  boundSteps(terminal)
  for (const command of TITLES) {
    terminal.parser.registerOscHandler(command, (title) => title.length > MAX_TITLE)
  }
}

/** Ignores sequences that take too many steps, and has what is written drawn in small pieces. */
function boundSteps(terminal: BoundedEmulator): void {
  let left = MOST_STEPS
  // The handler that was registered last is asked first.
  for (const final of REPEATING_SEQUENCES) {
    terminal.parser.registerCsiHandler({ final }, ([count]) => {
      const steps = Math.max(1, parameterValue(count))
      if (steps > MAX_REPETITIONS || steps > left) return true
      left -= steps
      return false
    })
  }
  const write = terminal.write.bind(terminal)
  terminal.write = (data, callback) => {
    const part = (from: number, to?: number) =>
      typeof data === 'string' ? data.slice(from, to) : data.subarray(from, to)
    let at = 0
    for (; data.length - at > PIECE_BYTES; at += PIECE_BYTES)
      write(part(at, at + PIECE_BYTES), () => gain(PIECE_BYTES))
    write(part(at), () => {
      gain(data.length - at)
      callback?.()
    })
  }
  const gain = (bytes: number): void => {
    left = Math.min(MOST_STEPS, left + bytes)
  }
}

/** Uses the widths of a version of Unicode, with the bound of combining characters. */
function useWidths(terminal: BoundedEmulator, version: IUnicodeVersionProvider): void {
  terminal.unicode.register({
    version: version.version,
    wcwidth: (codepoint) => version.wcwidth(codepoint),
    charProperties(codepoint, preceding) {
      const properties = version.charProperties(codepoint, preceding)
      if ((properties & JOINS) === 0) return properties
      const combined = (preceding >> STATE_SHIFT) + 1
      return combined > MAX_COMBINING ? ONE_COLUMN : properties | (combined << STATE_SHIFT)
    },
  })
  terminal.unicode.activeVersion = version.version
}

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
