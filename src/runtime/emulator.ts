import { BoundedEmulator } from './bounded-emulator.ts'
import { coreOf } from './emulator-core.ts'

/** The command of OSC that begins a link. */
const LINK = 8

/** The bit of a cell's attributes that says that it has some in an object of its own. */
const HAS_EXTENDED = 1 << 28

/** The size of an emulator. */
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
export async function openEmulator({ columns, rows, scrollback }: EmulatorOptions): Promise<BoundedEmulator> {
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
  // Nobody asks the emulator for links, and it would keep one for each cell, however long.
  terminal.parser.registerOscHandler(LINK, () => true)
  // Nor for the styles and colours of underlines, of which it would keep an object for each cell.
  Object.getPrototypeOf(coreOf(terminal)._inputHandler._curAttrData).updateExtended = withoutExtended
  // Emoji take two columns since Unicode 9; the emulator itself knows 6.
  return new BoundedEmulator(terminal, new Unicode11Addon())
}

function withoutExtended(this: { bg: number }): void {
  this.bg &= ~HAS_EXTENDED
}
