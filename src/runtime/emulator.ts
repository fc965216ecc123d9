import type { Terminal } from '@xterm/headless'
import { boundEmulator } from './bounded-emulator.ts'

/** The command of OSC that begins a link. */
const LINK = 8

/** The options of `openEmulator`. */
interface EmulatorOptions {
  columns: number
  rows: number
  /** Rows above the screen that are kept. */
  scrollback: number
}

/**
 * Loads the terminal emulator (xterm.js without its display), and makes one that no program can keep busy for long, or fill
 * memory with.
 */
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
  boundEmulator(terminal, new Unicode11Addon())
  // Nobody asks the emulator for links, and it would keep one for each cell, however long.
  terminal.parser.registerOscHandler(LINK, () => true)
  return terminal
}
