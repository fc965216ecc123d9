import { ComputeError } from '../sandbox.ts'
import type { FrameTransport, TransportHandlers } from '../sandboxd/transport.ts'

/** Characters kept of what a program writes to standard error, and those that are shown. @bound program */
const MAX_ERRORS = 4096
const MAX_SHOWN = 500

/** The standard input and output of a program that an engine runs in an instance, over a connection of the engine's. */
export abstract class ProgramTransport implements FrameTransport {
  #handlers: TransportHandlers | null = null
  /** What has arrived before `open`. */
  #early: Uint8Array[] = []
  #errors = ''
  #isOver = false
  readonly #spoke = Promise.withResolvers<void>()

  constructor() {
    this.#spoke.promise.catch(() => {})
  }

  /** Resolves when the program has written something. Rejects with the reason if the connection is over before. */
  get spoken(): Promise<void> {
    return this.#spoke.promise
  }

  async open(handlers: TransportHandlers): Promise<void> {
    this.#handlers = handlers
    for (const piece of this.#early.splice(0)) handlers.data(piece)
    if (this.#isOver) handlers.closed(this.reason)
  }

  abstract write(bytes: Uint8Array): number

  abstract terminate(): void

  /** Why the connection is over, a sentence; undefined if nothing more is known than that. */
  protected abstract readonly reason: string | undefined

  /** The beginning of what the program has written to standard error; of an error that it did not catch, the message. */
  get errors(): string {
    return /^error: .*/m.exec(this.#errors)?.[0] ?? this.#errors.trim().slice(0, MAX_SHOWN)
  }

  /** Receives a piece of what the program writes to standard output. */
  protected takeOutput(piece: Uint8Array): void {
    this.#spoke.resolve()
    if (this.#handlers === null) this.#early.push(piece)
    else this.#handlers.data(piece)
  }

  /** Receives a piece of what it writes to standard error. */
  protected takeErrors(piece: Uint8Array): void {
    const room = MAX_ERRORS - this.#errors.length
    if (room > 0) this.#errors += Buffer.from(piece.subarray(0, room)).toString()
  }

  /** Reports that there is room for more bytes. */
  protected drained(): void {
    this.#handlers?.drain()
  }

  /** Reports the end of the connection, once. @param cause rejects what waits for the program to write something */
  protected end(cause: unknown = new ComputeError(this.reason ?? 'The connection was closed.')): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#spoke.reject(cause)
    this.#handlers?.closed(this.reason)
  }

  /** Whether the connection is over. */
  protected get isOver(): boolean {
    return this.#isOver
  }
}
