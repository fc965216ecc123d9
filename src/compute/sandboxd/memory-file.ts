import { writeSync } from 'node:fs'
import type { Libc } from '../../runtime/libc.ts'

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
