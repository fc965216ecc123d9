import { PieceQueue } from '../../runtime/piece-queue.ts'
import { GRACE_MS, HANG_UP_MS } from '../processes.ts'
import { ComputeError, type ExecCommand, type ExecExit, type TerminalSize } from '../sandbox.ts'
import type { FrameChannel } from './channel.ts'
import {
  CHUNK,
  encodeNumber,
  FRAME,
  INPUT_WINDOW,
  ProtocolError,
  type SpawnRequest,
  TYPE_WINDOW,
  WINDOW,
} from './protocol.ts'

/** A command for sandboxd, on pipes or on a terminal of the given size, which has one stream only. */
export type SandboxdCommand = ExecCommand & { readonly terminal?: TerminalSize }

/** Most columns and rows of a terminal. @bound program */
const MOST_CELLS = 10_000

/** Delivered output bytes after which berth grants sandboxd more. */
const CREDIT_STEP = WINDOW / 4

/** Longest grace that a frame can carry and a timer can wait for. */
const MAX_GRACE_MS = 2 ** 30

/** Says that a command was not started, because its sandbox is gone. */
export const NOT_RUNNING = 'The server is not running any more; start it again.'

/** Result of a command that ran when its sandbox ended: as after SIGKILL. */
const KILLED: ExecExit = { exitCode: 137, timedOut: false, truncated: false }

/** Berth's side of one command: delivers its output in order, gives credit, resolves `exit`. */
export class SandboxdExecution {
  /** Its number in frames, and the end of its processes' marker. */
  readonly id: number
  readonly #command: SandboxdCommand
  readonly #channel: FrameChannel
  readonly #onCancel: (graceMs: number) => void
  readonly #result = Promise.withResolvers<ExecExit>()
  readonly #pid = Promise.withResolvers<number | null>()
  #hasStarted = false
  readonly #input: Uint8Array[] = []
  /** The size of its terminal. */
  #size: TerminalSize | null
  #begun = false
  /** The grace with which it was cancelled before it began; null if it was not. */
  #cancelled: number | null = null
  /** Bytes of input that sandboxd has, and all that the command's terminal or pipe has not taken. */
  #typing = 0
  #unread = 0
  /** Called when more input may be read from a stream. */
  #onRoom: (() => void) | null = null
  /** Cancels the stream of input. */
  #cancelInput = (): void => {}
  /** Resolves when all output so far is delivered; null if it is. */
  #delivery: Promise<void> | null = null
  /** Output that waits for what was delivered before. */
  readonly #undelivered = new PieceQueue<'stdout' | 'stderr'>()
  #window = WINDOW
  readonly #received = { stdout: 0, stderr: 0 }
  #delivered = 0
  #over = false

  /** `onCancel` is called once for each call of `cancel` or `hangUp` while the command runs. */
  constructor(
    id: number,
    command: SandboxdCommand,
    channel: FrameChannel,
    onCancel: (graceMs: number) => void,
  ) {
    this.id = id
    this.#command = command
    this.#channel = channel
    this.#onCancel = onCancel
    this.#size = command.terminal ?? null
    // Most callers wait for the exit only.
    this.#pid.promise.catch(() => {})
  }

  /** Resolves when the command has ended and its output is delivered; rejects with `ComputeError`. */
  get exit(): Promise<ExecExit> {
    return this.#result.promise
  }

  /** Whether the command has ended, even if output is still being delivered. */
  get over(): boolean {
    return this.#over
  }

  /** Whether output waits for who receives it. */
  get isDelivering(): boolean {
    return this.#delivery !== null
  }

  /** Asks sandboxd to run the command. */
  begin(): void {
    const { command, cwd = '', env = {}, stdin, timeoutMs, outputLimit = null, background } = this.#command
    const piped = stdin instanceof ReadableStream ? stdin : null
    const whole = stdin instanceof Uint8Array && stdin.length > 0 ? stdin : null
    const request: SpawnRequest = {
      ...{ command, cwd, env, timeoutMs, outputLimit },
      stdin: piped !== null ? 'pipe' : whole !== null ? 'file' : null,
      endBackground: background === 'ends',
      terminal: this.#size === null ? null : clampSize(this.#size),
    }
    this.#begun = true
    this.#channel.sendJson(FRAME.spawn, this.id, request)
    if (piped !== null) void this.#feed(piped)
    if (whole !== null) {
      this.#sendBytes(FRAME.stdin, whole)
      this.#channel.send(FRAME.begin, this.id)
    }
    this.#sendInput()
    if (this.#cancelled !== null) this.cancel(this.#cancelled)
  }

  /** Resolves to the command's pid when it runs; see `Execution.pid`. */
  get pid(): Promise<number | null> {
    return this.#pid.promise
  }

  /** The command runs. Throws `ProtocolError` if that was reported before. */
  startedAs(pid: number): void {
    if (this.#hasStarted) throw new ProtocolError('A command starts a second time.')
    this.#hasStarted = true
    this.#pid.resolve(pid)
  }

  /** Typed bytes that the terminal has not taken. */
  get unread(): number {
    return this.#unread
  }

  /** Sends a stream to the command's standard input, as fast as the command reads. */
  async #feed(input: ReadableStream<Uint8Array>): Promise<void> {
    const reader = input.getReader()
    this.#cancelInput = () => void reader.cancel().catch(() => {})
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (this.#over) return
        if (done) break
        this.type(value)
        await this.#room()
      }
      if (!this.#over) this.#channel.send(FRAME.endInput, this.id)
    } catch {
      // Who sent the input is gone, and waits for no result.
      this.cancel()
    }
  }

  /** Resolves when less than a window of input waits, or the command has ended. */
  async #room(): Promise<void> {
    while (this.#unread >= INPUT_WINDOW && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve
      })
    }
  }

  /** Types on the command's terminal, or writes to its pipe. Sends no more than that takes; the rest waits here. */
  type(data: Uint8Array): void {
    if (this.#over || data.length === 0) return
    this.#unread += data.length
    this.#input.push(data)
    this.#sendInput()
  }

  /** The terminal or pipe has taken bytes. Throws `ProtocolError` if it had fewer, or took none. */
  typed(bytes: number): void {
    if (bytes === 0) throw new ProtocolError('sandboxd has typed nothing.')
    if (bytes > this.#typing) throw new ProtocolError('sandboxd has typed more than it was sent.')
    this.#typing -= bytes
    this.#unread -= bytes
    this.#sendInput()
    this.#onRoom?.()
  }

  #sendInput(): void {
    if (!this.#begun) return
    const window = this.#command.terminal === undefined ? INPUT_WINDOW : TYPE_WINDOW
    for (let next = this.#input[0]; next !== undefined; next = this.#input[0]) {
      const piece = next.subarray(0, Math.min(CHUNK, window - this.#typing))
      if (piece.length === 0) return
      this.#typing += piece.length
      this.#channel.send(FRAME.type, this.id, piece)
      if (piece.length < next.length) this.#input[0] = next.subarray(piece.length)
      else this.#input.shift()
    }
  }

  /** Has sandboxd hang up the command's terminal; see `TerminalExecution`. */
  hangUp(): void {
    if (this.#over) return
    if (!this.#begun) this.cancel()
    else {
      this.#channel.send(FRAME.hangUp, this.id)
      this.#onCancel(HANG_UP_MS + GRACE_MS)
    }
  }

  /** Gives the command's terminal another size. */
  resize(size: TerminalSize): void {
    this.#size = size
    if (this.#begun && !this.#over) this.#channel.sendJson(FRAME.resize, this.id, clampSize(size))
  }

  #sendBytes(kind: number, data: Uint8Array): void {
    for (let at = 0; at < data.length; at += CHUNK) {
      this.#channel.send(kind, this.id, data.subarray(at, at + CHUNK))
    }
  }

  /** Has sandboxd end the command; see `Execution`. */
  cancel(graceMs = GRACE_MS): void {
    if (this.#over) return
    const grace = Math.min(Math.max(Math.ceil(graceMs), 0), MAX_GRACE_MS)
    this.#cancelled = Math.min(this.#cancelled ?? grace, grace)
    if (!this.#begun) return
    this.#channel.send(FRAME.cancel, this.id, encodeNumber(grace))
    this.#onCancel(grace)
  }

  /** Output from sandboxd. Throws `ProtocolError` if it sends more than it may. */
  receive(stream: 'stdout' | 'stderr', data: Uint8Array): void {
    if (data.length === 0) throw new ProtocolError('sandboxd sent output without bytes.')
    this.#received[stream] += data.length
    if (this.#received[stream] > (this.#command.outputLimit ?? Number.POSITIVE_INFINITY)) {
      throw new ProtocolError('sandboxd sent more output than was asked for.')
    }
    this.#window -= data.length
    if (this.#window < 0) throw new ProtocolError('sandboxd sent more output than it was given credit for.')
    this.#deliver(stream, data)
  }

  /** Prints a line from berth itself on the command's standard error, so a person learns what happened. */
  note(message: string): void {
    this.#deliver('stderr', new TextEncoder().encode(`berth: ${message}\n`))
  }

  /** Notes that the command has ended. */
  finish(result: ExecExit): void {
    this.#complete(() => this.#result.resolve(result))
  }

  /** Notes that the command could not be started. */
  fail(message: string): void {
    this.#pid.reject(new ComputeError(message))
    this.#complete(() => this.#result.reject(new ComputeError(message)))
  }

  /**
   * Ends the execution because the sandbox is gone: it was killed if it had started, else it was not started.
   *
   * @param cause says why it cannot be reached; null if it ended otherwise
   */
  abandon(cause: string | null): void {
    const message = cause === null ? NOT_RUNNING : `${NOT_RUNNING} ${cause}`
    if (!this.#hasStarted) this.fail(message)
    else {
      if (cause !== null) this.note(message)
      this.finish(KILLED)
    }
  }

  #complete(settle: () => void): void {
    if (this.#over) return
    this.#over = true
    this.#input.length = 0
    this.#unread = 0
    this.#cancelInput()
    this.#onRoom?.()
    this.#pid.resolve(null)
    if (this.#delivery === null) settle()
    else void this.#delivery.then(settle)
  }

  #deliver(stream: 'stdout' | 'stderr', data: Uint8Array): void {
    if (this.#delivery !== null) {
      this.#undelivered.push(stream, data)
      return
    }
    const pending = this.#deliverNow(stream, data)
    if (pending !== undefined) this.#delivery = this.#deliverRest(pending)
  }

  /** Delivers what waits, until nothing does. */
  async #deliverRest(pending: Promise<void>): Promise<void> {
    await pending
    for (let next = this.#undelivered.shift(); next !== undefined; next = this.#undelivered.shift()) {
      await this.#deliverNow(next.kind, next.bytes)
    }
    this.#delivery = null
  }

  /** Passes output to the caller; returns a promise only if the caller does. */
  #deliverNow(stream: 'stdout' | 'stderr', data: Uint8Array): Promise<void> | undefined {
    try {
      const pending = this.#command.onOutput(stream, data)
      if (pending === undefined) return this.#credit(data.length)
      return pending.then(
        () => this.#credit(data.length),
        (error: unknown) => this.#deliveryFailed(error),
      )
    } catch (error) {
      this.#deliveryFailed(error)
      return undefined
    }
  }

  #credit(bytes: number): undefined {
    this.#delivered += bytes
    if (this.#over || this.#delivered < CREDIT_STEP) return
    this.#window += this.#delivered
    this.#channel.send(FRAME.credit, this.id, encodeNumber(this.#delivered))
    this.#delivered = 0
  }

  /** The caller's own fault in taking output: the command is of no use anymore. */
  #deliveryFailed(error: unknown): void {
    this.cancel()
    this.#over = true
    this.#cancelInput()
    this.#onRoom?.()
    this.#pid.resolve(null)
    this.#result.reject(error)
  }
}

function clampSize({ columns, rows }: TerminalSize): TerminalSize {
  const possible = (cells: number): number => Math.min(Math.max(Math.floor(cells) || 1, 1), MOST_CELLS)
  return { columns: possible(columns), rows: possible(rows) }
}
