import { writeSync } from 'node:fs'
import type { Libc } from '../../system/system.ts'

/** Longest single argument that Linux passes to a program, with room for the terminating zero. @bound system */
const MAX_ARGUMENT = 128 * 1024 - 1

/** The descriptor of a command that is too long for an argument. */
const SCRIPT_FD = 3

/** Runs a command too long for an argument: the shell reads it from a descriptor, which it then closes. */
const LONG_COMMAND = `eval "$(cat <&${SCRIPT_FD})" ${SCRIPT_FD}<&-`

/** A command as a shell receives it. */
export interface Script {
  /** The argument after `sh -c`. */
  readonly command: string
  /** Descriptors from number 3 on; the caller closes them. */
  readonly fds: number[]
}

/** Turns a shell command of any length into an argument and, if it is too long for one, a file. */
export function scriptOf(libc: Libc, command: string): Script {
  if (Buffer.byteLength(command) <= MAX_ARGUMENT) return { command, fds: [] }
  const file = new MemoryFile(libc)
  file.append(new TextEncoder().encode(command))
  return { command: LONG_COMMAND, fds: [file.fd] }
}

/** A file in memory whose descriptor stays at the beginning while it is filled, for a child to read. */
export class MemoryFile {
  readonly fd: number
  #size = 0

  constructor(libc: Libc) {
    this.fd = libc.memoryFile()
  }

  /** Adds bytes at the end. */
  append(data: Uint8Array): void {
    for (let at = 0; at < data.length; ) {
      const written = writeSync(this.fd, data, at, data.length - at, this.#size)
      at += written
      this.#size += written
    }
  }
}
