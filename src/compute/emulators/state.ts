import type { Terminal } from '@xterm/headless'
import type { BoundedEmulator } from '../../runtime/bounded-emulator.ts'
import { coreOf } from '../../runtime/emulator-core.ts'

/** The numbers of cursor styles that do not blink (DECSCUSR); one that blinks has the number before. */
const CURSOR_STYLES: Readonly<Record<string, number>> = { block: 2, underline: 4, bar: 6 }

/** The modes of the encodings of mouse reports, but for the first one's (xterm's control sequences, "Mouse"). */
const MOUSE_MODES: Readonly<Record<string, number>> = { SGR: 1006, SGR_PIXELS: 1016 }

/**
 * Reports whether plain lines that are followed by enough others leave no trace: the normal screen scrolls as a whole,
 * and no sequence is under way.
 */
export function takesPlainText({ terminal, isInSequence }: BoundedEmulator): boolean {
  const { buffer } = coreOf(terminal)
  return (
    terminal.buffer.active.type === 'normal' &&
    buffer.scrollTop === 0 &&
    buffer.scrollBottom === terminal.rows - 1 &&
    !isInSequence
  )
}

/** Reports whether a program has hidden the cursor. */
export const cursorIsHidden = (terminal: Terminal): boolean => coreOf(terminal).coreService.isCursorHidden

/** Returns the sequences for what the serialize addon leaves out: margins, mouse encoding, cursor and title. */
export function stateSequences(terminal: Terminal, title: string): string {
  const { buffer, coreService, coreMouseService } = coreOf(terminal)
  const { cursorStyle, cursorBlink, origin } = coreService.decPrivateModes
  const { scrollTop, scrollBottom, x, y } = buffer
  const sequences: string[] = []
  const hasMargins = scrollTop > 0 || scrollBottom < terminal.rows - 1
  if (hasMargins) sequences.push(`\x1b[${scrollTop + 1};${scrollBottom + 1}r`)
  // Margins and the origin mode have moved the cursor.
  if (hasMargins || origin) sequences.push(`\x1b[${y + 1 - (origin ? scrollTop : 0)};${x + 1}H`)
  const mouse = MOUSE_MODES[coreMouseService.activeEncoding]
  if (mouse !== undefined) sequences.push(`\x1b[?${mouse}h`)
  const style = CURSOR_STYLES[cursorStyle ?? '']
  if (style !== undefined) sequences.push(`\x1b[${cursorBlink ? style - 1 : style} q`)
  if (coreService.isCursorHidden) sequences.push('\x1b[?25l')
  if (title !== '') sequences.push(`\x1b]2;${title}\x07`)
  return sequences.join('')
}
