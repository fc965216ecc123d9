import type { Terminal } from '@xterm/headless'

/** Sequences that the emulator carries out step by step, for as many steps as a program names. */
const REPEATING_SEQUENCES = ['L', 'M', 'S', 'T', 'b', 'I', 'Z'] as const

/** Steps that no program means: a sequence with more is ignored. */
const MAX_REPETITIONS = 1_000

/** The options of `openEmulator`. */
export interface EmulatorOptions {
  columns: number
  rows: number
  /** Rows above the screen that are kept. */
  scrollback: number
}

/** Loads the terminal emulator (xterm.js without its display), and makes one that no program can keep busy for long. */
export async function openEmulator({ columns, rows, scrollback }: EmulatorOptions): Promise<Terminal> {
  const [{ Terminal }, { Unicode11Addon }] = await Promise.all([
    import('@xterm/headless'),
    import('@xterm/addon-unicode11'),
  ])
  const terminal = new Terminal({
    cols: columns,
    rows,
    scrollback,
    logLevel: 'off',
    allowProposedApi: true,
  })
  // Emoji take two columns since Unicode 9; the emulator itself knows 6.
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  // The handler that was registered last is asked first.
  for (const final of REPEATING_SEQUENCES) {
    terminal.parser.registerCsiHandler({ final }, ([count]) => parameterValue(count) > MAX_REPETITIONS)
  }
  return terminal
}

/** Returns a parameter of a sequence, or 0 if it is missing. */
export const parameterValue = (parameter: number | number[] | undefined): number =>
  typeof parameter === 'number' ? parameter : 0
