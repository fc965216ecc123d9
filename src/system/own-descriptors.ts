/** What the command line does with its own descriptors. */
import { ptr } from 'bun:ffi'
import { openLibc } from './libc.ts'
import { processes } from './processes.ts'

/** Room for a termios of any system: 60 bytes on Linux, 72 on macOS. */
const TERMIOS_BYTES = 128

const TCSADRAIN = 1

/**
 * Puts the terminal of standard input in raw mode (termios(3), cfmakeraw): every key is read as it is typed, and output
 * is shown as it is written. Bun's own raw mode turns each line feed into two characters, which a program on another
 * terminal has done already.
 *
 * @returns a function that restores the mode of before
 * @throws Error if standard input is not a terminal
 */
export function enterRawMode(): () => void {
  const { tcgetattr, cfmakeraw, tcsetattr } = openLibc({
    tcgetattr: { args: ['int', 'ptr'], returns: 'int' },
    cfmakeraw: { args: ['ptr'], returns: 'void' },
    tcsetattr: { args: ['int', 'int', 'ptr'], returns: 'int' },
  })
  const before = new Uint8Array(TERMIOS_BYTES)
  if (tcgetattr(0, ptr(before)) !== 0) throw new Error('Standard input is not a terminal.')
  const raw = before.slice()
  cfmakeraw(ptr(raw))
  tcsetattr(0, TCSADRAIN, ptr(raw))
  return () => void tcsetattr(0, TCSADRAIN, ptr(before))
}

/** Closes a file descriptor when another program is started (open(2)). */
const O_CLOEXEC = 0o2000000

/**
 * Redirects the output of this process to a file, including fatal errors that the runtime prints. The process that waits
 * for the end of the output then sees it.
 *
 * @param fd file descriptor that is open for writing
 */
export function redirectOutput(fd: number): void {
  const { dup2 } = openLibc({ dup2: { args: ['int', 'int'], returns: 'int' } })
  // Bun duplicates the descriptors once a module asks for `process.stdout` or `process.stderr`.
  const copies = outputCopies()
  for (const stream of [1, 2]) dup2(fd, stream)
  if (copies.length === 0) return
  const duplicate = process.platform === 'darwin' ? dup2 : loadDup3()
  for (const copy of copies) duplicate(fd, copy)
}

/** macOS has no dup3(2). Bun starts programs there with those descriptors alone that it is given. */
function loadDup3(): (fd: number, copy: number) => number {
  const { dup3 } = openLibc({ dup3: { args: ['int', 'int', 'int'], returns: 'int' } })
  return (fd, copy) => dup3(fd, copy, O_CLOEXEC)
}

/** Returns the other descriptors of the pipes that are the output of this process. */
function outputCopies(): number[] {
  const all = Array.from(processes.descriptors(process.pid) ?? [])
  const outputs = all.filter(({ fd, target }) => (fd === 1 || fd === 2) && /^(?:socket|pipe):/.test(target))
  return all
    .filter(({ fd, target }) => fd > 2 && outputs.some((output) => output.target === target))
    .map(({ fd }) => fd)
}
