import { ptr } from 'bun:ffi'
import { openLibc } from '../../compute/sandboxd/libc.ts'

/** Room for a termios of any system; Linux has 60 bytes. */
const TERMIOS_BYTES = 128

const TCSADRAIN = 1

/**
 * Puts the terminal of standard input in raw mode (termios(3), cfmakeraw): every key is read as it is typed, and output
 * is shown as it is written. Bun's own raw mode turns each line feed into two characters, which a program on another
 * terminal has done already.
 *
 * @returns a function that restores the mode of before
 * @throws Error if standard input is no terminal
 */
export function enterRawMode(): () => void {
  const { tcgetattr, cfmakeraw, tcsetattr } = openLibc({
    tcgetattr: { args: ['int', 'ptr'], returns: 'int' },
    cfmakeraw: { args: ['ptr'], returns: 'void' },
    tcsetattr: { args: ['int', 'int', 'ptr'], returns: 'int' },
  })
  const before = new Uint8Array(TERMIOS_BYTES)
  if (tcgetattr(0, ptr(before)) !== 0) throw new Error('Standard input is no terminal.')
  const raw = before.slice()
  cfmakeraw(ptr(raw))
  tcsetattr(0, TCSADRAIN, ptr(raw))
  return () => void tcsetattr(0, TCSADRAIN, ptr(before))
}
