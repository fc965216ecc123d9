import { closeSync } from 'node:fs'
import type { Libc } from '../../system/system.ts'

/** The pipe of a command's standard input, which is filled while the command runs. */
export class InputPipe {
  /** The end that the command reads. The caller closes it. */
  readonly fd: number
  readonly #write: number
  readonly #sink: Bun.FileSink
  readonly #onTaken: (bytes: number) => void
  #waiting: Uint8Array[] = []
  #isWriting = false
  #hasEnded = false
  #isClosed = false

  /**
   * Creates a pipe. Throws if there are too many open files.
   *
   * @param onTaken called when the pipe has taken bytes; never again once nobody reads them
   */
  constructor(libc: Pick<Libc, 'pipe'>, onTaken: (bytes: number) => void) {
    const { read, write } = libc.pipe('write')
    this.fd = read
    this.#write = write
    this.#sink = Bun.file(write).writer()
    this.#onTaken = onTaken
  }

  /** Adds bytes, which must not change. Berth sends no more than `INPUT_WINDOW` ahead. */
  write(data: Uint8Array): void {
    if (this.#hasEnded) return
    this.#waiting.push(data)
    void this.#pass()
  }

  /** Closes the pipe after what was added. Calling it again is harmless. */
  end(): void {
    this.#hasEnded = true
    void this.#pass()
  }

  /** Closes the pipe. Drops what nobody has read. */
  discard(): void {
    this.#waiting = []
    this.end()
  }

  async #pass(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        await this.#sink.write(next)
        await this.#sink.flush()
        this.#onTaken(next.length)
      }
    } catch {
      // Nobody reads any more. Nothing is taken from now on, so the sender waits for the command's end.
      this.#waiting = []
      this.#hasEnded = true
    }
    this.#isWriting = false
    if (this.#hasEnded) await this.#close()
  }

  /** Closes the descriptor, and the sink's own. Not during a write: the numbers may belong to other files then. */
  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    try {
      await this.#sink.end()
    } catch {
      // Nobody reads.
    }
    closeSync(this.#write)
  }
}
