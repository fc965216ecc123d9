import { closeSync, writeSync } from 'node:fs'
import type { TerminalSize } from '../driver.ts'
import type { Pty, PtyCalls } from './pty.ts'
import type { Script } from './script.ts'

/** What programs take a terminal for, unless their variables say otherwise: the kind that all know. */
export const TERMINAL_TYPE = 'xterm-256color'

/** Bytes that are kept of what was typed and no program has read; what is beyond is lost, as on any terminal. */
const MOST_TYPED = 2 ** 20

/** Milliseconds until it is tried again to type what a terminal has no room for. */
const FULL_PAUSE_MS = 10

/** Gives a command its own standard input, which lies behind its script's descriptors; the terminal stays in reach. */
const WITH_INPUT = (fd: number): string => `exec /bin/sh -c "$1" <&${fd} ${fd}<&-`

/** A pseudo-terminal while its command runs. */
export class Terminal {
  readonly #calls: PtyCalls
  readonly #pty: Pty
  #typed: Uint8Array[] = []
  #bytes = 0
  #timer: Timer | undefined
  #released = false

  /** The descriptors of `pty` belong to it from here on, but for the master: whoever reads that closes it. */
  constructor(calls: PtyCalls, pty: Pty, size: TerminalSize) {
    this.#calls = calls
    this.#pty = pty
    this.resize(size)
  }

  /** The descriptor that programs have. */
  get slave(): number {
    return this.#pty.slave
  }

  /** Types these bytes, now or when the terminal has room for them. */
  write(data: Uint8Array): void {
    const room = MOST_TYPED - this.#bytes
    if (this.#released || room <= 0) return
    const taken = data.subarray(0, room)
    this.#typed.push(taken)
    this.#bytes += taken.length
    if (this.#typed.length === 1) this.#type()
  }

  /** Sets the size. */
  resize(size: TerminalSize): void {
    if (!this.#released) this.#calls.resize(this.#pty.master, size)
  }

  /**
   * The command is over: nothing is typed any more, and output ends when no program holds the terminal. Until now it
   * was held here, so that a command that closes its own output for a while does not end it.
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
      this.#bytes -= written
      if (written < next.length) {
        this.#typed[0] = next.subarray(written)
        this.#timer = setTimeout(() => this.#type(), FULL_PAUSE_MS)
        return
      }
      this.#typed.shift()
    }
  }

  #write(data: Uint8Array): number {
    try {
      return writeSync(this.#pty.master, data)
    } catch {
      // Full: programs that do not read what is typed are given time.
      return 0
    }
  }
}

/**
 * The command line that runs a script with the terminal on descriptor 0 as its controlling one, which makes Ctrl-C
 * and job control work.
 *
 * @param setsid path of the program that sees to it; null for none, so that the terminal is not the controlling one
 * @param input descriptor of a standard input of its own; null for the terminal
 */
export function terminalArguments(script: Script, setsid: string | null, input: number | null): string[] {
  const { command } = script
  const shell =
    input === null ? ['/bin/sh', '-c', command] : ['/bin/sh', '-c', WITH_INPUT(input), 'sh', command]
  return setsid === null ? shell : [setsid, '-c', ...shell]
}
