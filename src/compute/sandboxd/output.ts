import { closeSync, readSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { CHUNK } from './protocol.ts'

/** Milliseconds between two looks at output that is dropped, so endless printing costs little. */
const DISCARD_PAUSE_MS = 2

/** Bytes that a pipe has room for between two of them: what every user may set, see pipe(7). */
export const WIDE_PIPE = 2 ** 20

/** Upper bound for what a pipe and the reader's buffer hold of a process that has ended. */
const TAIL_BYTES = 512 * 1024

/** Buffer for the rest of a command that has ended. These reads are synchronous, so one buffer serves all. */
const BUFFER = new Uint8Array(CHUNK)

/** Milliseconds for which pieces are gathered that follow one another: too short for a person to notice. */
const GATHER_MS = 4

/** Pieces sent at once in that time, before any is gathered: more than a person's keys are echoed in. @bound system */
const MAX_AT_ONCE = 8

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

  /** Reports whether there is credit for all of these bytes. */
  covers(bytes: number): boolean {
    return bytes <= this.#bytes
  }

  /** Takes up to `most` bytes; returns 0 if none are left. */
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

/** Moves one stream's output from a command's pipe to berth. */
export class OutputPump {
  readonly #fd: number
  readonly #credit: Credit
  readonly #send: (data: Uint8Array) => void
  readonly #widen: ((fd: number) => void) | null
  #left: number
  #tail = Number.POSITIVE_INFINITY
  #discarding = false
  #unsent: Uint8Array | null = null

  /** Whether output waits for the receiver rather than for the command. */
  stalled = false
  /** Whether output was dropped for exceeding the limit. */
  truncated = false

  /**
   * Reads `fd` and finally closes it. Sends at most `limit` bytes and drops the rest.
   *
   * @param widen gives a pipe room for `WIDE_PIPE` bytes; null for a terminal
   */
  constructor(
    fd: number,
    credit: Credit,
    limit: number | null,
    send: (data: Uint8Array) => void,
    widen: ((fd: number) => void) | null = null,
  ) {
    this.#widen = widen
    this.#fd = fd
    this.#credit = credit
    this.#left = limit ?? Number.POSITIVE_INFINITY
    this.#send = send
  }

  /**
   * Announces that the command's process has ended: its output is still sent, but not what other processes keep
   * writing.
   */
  expectEnd(): void {
    this.#tail = TAIL_BYTES
  }

  /**
   * Sends nothing more. Continues to read, because a background child that prints into a closed pipe would die of
   * SIGPIPE.
   */
  discard(): void {
    this.#discarding = true
  }

  /**
   * Sends what is left in the pipe of a command that has ended. Returns whether that was everything: another process
   * may hold the pipe's other end, or the receiver may have no room; then call `run`.
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
      // Nothing more for now, or a fault that `run` meets too.
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
        if (this.#discarding || this.#left === 0) {
          await Bun.sleep(DISCARD_PAUSE_MS)
          if (this.#widen !== null && this.truncated) this.#drop()
        } else if (!this.#credit.covers(1)) await this.#creditAvailable()
        const { done, value } = await reader.read()
        if (done) return
        // A terminal prints a few lines at a time, so a promise for each piece would cost more than the rest.
        if (!this.#deliverNow(value)) await this.#deliver(value)
      }
    } catch (error) {
      // A terminal reports this way that no program holds it anymore.
      if (!(codeOf(error) === 'EIO')) throw error
    } finally {
      closeSync(this.#fd)
    }
  }

  /** Sends a whole piece if that needs no waiting. Returns whether it did. */
  #deliverNow(value: Uint8Array): boolean {
    const { length } = value
    if (this.#discarding || this.#tail <= length || length > Math.min(this.#left, CHUNK)) return false
    if (!this.#credit.covers(length)) return false
    this.#tail -= length
    this.#left -= this.#credit.take(length)
    this.#send(value)
    return true
  }

  async #deliver(value: Uint8Array): Promise<void> {
    let data = value.subarray(0, this.#left)
    if (data.length < value.length && !this.#discarding && !this.truncated) {
      this.truncated = true
      this.#widen?.(this.#fd)
    }
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

  /** Drops what a pipe holds. */
  #drop(): void {
    try {
      for (let dropped = 0; dropped < WIDE_PIPE; ) {
        const length = readSync(this.#fd, BUFFER)
        if (length === 0) return
        dropped += length
      }
    } catch {
      // Nothing more for now, or a fault that the next read meets too.
    }
  }

  async #creditAvailable(): Promise<void> {
    this.stalled = true
    await this.#credit.available()
    this.stalled = false
  }
}

/**
 * Joins small pieces of output. A terminal prints a few lines at a time, each of which would otherwise be one frame.
 * Sends the first pieces after a pause at once.
 */
export class OutputBatcher {
  readonly #send: (data: Uint8Array) => void
  #pieces: Uint8Array[] = []
  #bytes = 0
  #timer: Timer | null = null
  #sentAtOnce = 0

  /** `send` is given the gathered bytes. */
  constructor(send: (data: Uint8Array) => void) {
    this.#send = send
  }

  /** Takes the next piece. */
  add(data: Uint8Array): void {
    this.#timer ??= setTimeout(() => this.#next(), GATHER_MS)
    if (this.#bytes === 0 && this.#sentAtOnce < MAX_AT_ONCE) {
      this.#sentAtOnce += 1
      this.#send(data)
      return
    }
    this.#pieces.push(data)
    this.#bytes += data.length
    if (this.#bytes >= CHUNK) this.flush()
  }

  /** Sends the pieces gathered so far. */
  flush(): void {
    if (this.#bytes === 0) return
    const gathered = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#bytes = 0
    this.#send(gathered)
  }

  /** Continues to gather while pieces arrive. After a pause the next pieces are sent at once. */
  #next(): void {
    const paused = this.#bytes === 0
    this.flush()
    if (paused) this.#sentAtOnce = 0
    this.#timer = paused ? null : setTimeout(() => this.#next(), GATHER_MS)
  }
}
