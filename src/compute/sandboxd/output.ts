import { closeSync, readSync } from 'node:fs'
import { CHUNK } from './protocol.ts'

/** Milliseconds between two reads of output that nobody wants: endless printing costs little. */
const DISCARD_PAUSE_MS = 2

/** What a pipe and the reader's buffer can hold of a process that has ended, with room to spare. */
const TAIL_BYTES = 512 * 1024

/** What is read at once of a command that has ended; reading waits for nobody, so that one serves all. */
const BUFFER = new Uint8Array(CHUNK)

/** How many bytes of output may be sent, shared by an execution's two streams. */
export class Credit {
  #bytes: number
  #waiting: Array<() => void> = []

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** Adds bytes that the receiver has room for. */
  add(bytes: number): void {
    this.#bytes += bytes
    for (const wake of this.#waiting.splice(0)) wake()
  }

  /** Whether there is credit for all of these bytes. */
  covers(bytes: number): boolean {
    return bytes <= this.#bytes
  }

  /** Takes up to so many bytes; 0 where none are left. */
  take(most: number): number {
    const taken = Math.min(most, this.#bytes)
    this.#bytes -= taken
    return taken
  }

  /** Resolves when there may be credit again; at once when there is. */
  async available(): Promise<void> {
    while (this.#bytes === 0) await new Promise<void>((wake) => this.#waiting.push(wake))
  }
}

/** Moves what a command writes to one stream from its pipe to berth. */
export class OutputPump {
  readonly #fd: number
  readonly #credit: Credit
  readonly #send: (data: Uint8Array) => void
  #left: number
  #tail = Number.POSITIVE_INFINITY
  #discarding = false
  #unsent: Uint8Array | null = null

  /** Whether output waits for the receiver rather than for the command. */
  stalled = false
  /** Whether output was dropped for exceeding the limit. */
  truncated = false

  /** Reads `fd` and closes it in the end. `limit` is the most bytes to send; what comes after is dropped. */
  constructor(fd: number, credit: Credit, limit: number | null, send: (data: Uint8Array) => void) {
    this.#fd = fd
    this.#credit = credit
    this.#left = limit ?? Number.POSITIVE_INFINITY
    this.#send = send
  }

  /** The command's process has ended: what it wrote is still sent, but not what others go on writing for ever. */
  expectEnd(): void {
    this.#tail = TAIL_BYTES
  }

  /**
   * Sends nothing more. Reading goes on, since a background child that printed into a closed pipe
   * would die of SIGPIPE.
   */
  discard(): void {
    this.#discarding = true
  }

  /**
   * Sends what the pipe holds of a command that has ended. Returns whether that was all of it: somebody
   * may still hold the pipe's other end, or the receiver have no room; `run` then does the rest.
   */
  takeEnd(): boolean {
    try {
      for (;;) {
        const length = readSync(this.#fd, BUFFER)
        if (length === 0) {
          closeSync(this.#fd)
          return true
        }
        const data = BUFFER.slice(0, length)
        if (length > this.#left || !this.#credit.covers(length)) {
          this.#unsent = data
          return false
        }
        this.#left -= this.#credit.take(length)
        this.#send(data)
      }
    } catch {
      // Nothing more for now.
      return false
    }
  }

  /** Resolves at end of file. */
  async run(): Promise<void> {
    const reader = Bun.file(this.#fd).stream().getReader()
    try {
      if (this.#unsent !== null) await this.#deliver(this.#unsent)
      this.#unsent = null
      for (;;) {
        if (this.#discarding || this.#left === 0) await Bun.sleep(DISCARD_PAUSE_MS)
        else await this.#creditAvailable()
        const { done, value } = await reader.read()
        if (done) return
        await this.#deliver(value)
      }
    } catch (error) {
      // So a terminal says that no program holds it any more.
      if (!(error instanceof Error && 'code' in error && error.code === 'EIO')) throw error
    } finally {
      closeSync(this.#fd)
    }
  }

  async #deliver(value: Uint8Array): Promise<void> {
    let data = value.subarray(0, this.#left)
    if (data.length < value.length && !this.#discarding) this.truncated = true
    this.#tail -= data.length
    while (data.length > 0 && !this.#discarding) {
      await this.#creditAvailable()
      const taken = this.#credit.take(Math.min(data.length, CHUNK))
      if (taken === 0) continue
      this.#send(data.subarray(0, taken))
      this.#left -= taken
      data = data.subarray(taken)
    }
    if (this.#tail <= 0) this.discard()
  }

  async #creditAvailable(): Promise<void> {
    this.stalled = true
    await this.#credit.available()
    this.stalled = false
  }
}
