import { closeSync, writeSync } from 'node:fs'
import type { Pty, PtyCalls } from '../../system/system.ts'
import type { TerminalSize } from '../sandbox.ts'
import type { Script } from './script.ts'

/** The TERM of commands on a terminal, a type that all programs know. */
export const TERMINAL_TYPE = 'xterm-256color'

/** Milliseconds between attempts to type into a full terminal: at first, and at most. */
const FIRST_PAUSE_MS = 1
const LONGEST_PAUSE_MS = 16

/** Gives a command its own standard input, from the descriptor after its script's; the terminal stays available. */
const WITH_INPUT = (fd: number): string => `exec /bin/sh -c "$1" <&${fd} ${fd}<&-`

/** A pseudo-terminal while its command runs. */
export class CommandTerminal {
  readonly #calls: PtyCalls
  readonly #pty: Pty
  readonly #onTyped: (bytes: number) => void
  #typed: Uint8Array[] = []
  #pauseMs = FIRST_PAUSE_MS
  #timer: Timer | undefined
  #released = false

  /**
   * Takes ownership of the slave descriptor of `pty`; the reader of the master closes that one.
   *
   * @param onTyped called when the terminal has taken typed bytes
   */
  constructor(calls: PtyCalls, pty: Pty, size: TerminalSize, onTyped: (bytes: number) => void) {
    this.#onTyped = onTyped
    this.#calls = calls
    this.#pty = pty
    this.resize(size)
  }

  /** The descriptor that programs have. */
  get slave(): number {
    return this.#pty.slave
  }

  /** Types these bytes, now or when the terminal has room for them. Berth sends no more than `TYPE_WINDOW` ahead. */
  write(data: Uint8Array): void {
    if (this.#released) return
    this.#typed.push(data)
    if (this.#typed.length === 1) this.#type()
  }

  /** Sets the size. */
  resize(size: TerminalSize): void {
    if (!this.#released) this.#calls.resize(this.#pty.master, size)
  }

  /**
   * Stops typing and closes the slave, so output ends when no program holds the terminal. It is kept open until now
   * because a command may close its own output for a while.
   */
  release(): void {
    if (this.#released) return
    this.#released = true
    clearTimeout(this.#timer)
    closeSync(this.#pty.slave)
  }

  #type(): void {
    if (this.#released) return
    for (let next = this.#typed[0]; next !== undefined; next = this.#typed[0]) {
      const written = this.#write(next)
      if (written > 0) this.#onTyped(written)
      if (written < next.length) {
        this.#typed[0] = next.subarray(written)
        this.#pauseMs = written > 0 ? FIRST_PAUSE_MS : Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
        this.#timer = setTimeout(() => this.#type(), this.#pauseMs)
        return
      }
      this.#typed.shift()
    }
  }

  #write(data: Uint8Array): number {
    try {
      return writeSync(this.#pty.master, data)
    } catch {
      // The terminal is full: wait for programs to read.
      return 0
    }
  }
}

/**
 * Returns the command line that runs a script with descriptor 0 as its controlling terminal, which makes Ctrl-C and
 * job control work.
 *
 * @param control what makes it that one, before the program; empty to do without
 * @param input descriptor of a separate standard input; null for the terminal
 */
export function terminalArguments(
  script: Script,
  control: readonly string[],
  input: number | null,
): string[] {
  const { command } = script
  const shell =
    input === null ? ['/bin/sh', '-c', command] : ['/bin/sh', '-c', WITH_INPUT(input), 'sh', command]
  return [...control, ...shell]
}
