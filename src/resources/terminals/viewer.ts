import type { TerminalSize } from '../../compute/sandbox.ts'
import { SHARED_ENDS, type Socket, type SocketEnd, type SocketListener } from '../../http/web-socket.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { MAX_CELLS } from './model.ts'

/** Why berth closes the socket of a viewer, by what has happened. docs/terminals.md lists them. */
export const SOCKET_ENDS = {
  ...SHARED_ENDS,
  exited: { code: 1000, reason: 'the program has ended' },
  badFrame: { code: 4000, reason: 'a text frame is {"resize":[columns,rows]}, each from 1 to 10000' },
  serverStopped: { code: 4003, reason: 'the server has stopped' },
  serverDeleted: { code: 4004, reason: 'the server was deleted' },
  deleted: { code: 4006, reason: 'the terminal was deleted' },
  silent: { code: 4008, reason: 'the viewer has not read or answered for two minutes' },
  typedTooMuch: { code: 4009, reason: 'more was typed than the program reads' },
} as const satisfies Record<string, SocketEnd>

/** Bytes on their way to a viewer from which it counts as behind the program. */
const FULL_BYTES = 1024 * 1024

/**
 * Bytes on their way to a viewer after which it is sent the screen anew in place of what it has missed.
 * @bound program
 */
const MOST_BYTES = 4 * 1024 * 1024

/**
 * The same for a viewer that tells what it has drawn, such as a browser's page. Drawing takes longer than printing, so
 * it skips what nobody could read, in place of holding up the program.
 * @bound program
 */
const MOST_UNDRAWN_BYTES = 512 * 1024

/** Milliseconds between pings, and in which one has to be answered. */
const PING_MS = 30_000
const SILENCE_MS = 120_000

/** Ends what a program has begun, and clears a viewer's terminal before a new screen: CAN, RIS (ECMA-48). */
const CLEAR = '\x18\x1bc'

/** The terminal that a viewer shows. */
export interface ViewedTerminal {
  /** Called when the socket is open: the viewer waits for the first screen. */
  join(viewer: Viewer): void
  /** Called when the viewer has given its size. */
  resized(): void
  type(viewer: Viewer, data: Uint8Array): void
  /** Called when the viewer has room again. */
  drained(viewer: Viewer): void
  leave(viewer: Viewer): void
}

/**
 * One attached WebSocket. It is sent the screen, then everything that the program prints. While a screen is made, and
 * while the viewer does not read, what is printed is kept for it up to a bound; beyond, it is sent the screen anew.
 */
export class Viewer implements SocketListener {
  readonly #terminal: ViewedTerminal
  /** Called when it is closed. */
  readonly #onClosed: () => void
  #size: TerminalSize | null
  #socket: Socket | null = null
  #isClosed = false
  /** What was printed since the screen that is being made; null if none is. */
  #waiting: Uint8Array[] | null = []
  #waitingBytes = 0
  /** Whether it has missed something, and is sent the screen anew when it has read all that it was sent. */
  #isBehind = false
  /** Bytes that it was sent and has not drawn; counts from the start, in case it will tell. */
  #undrawn = 0
  #tellsWhatIsDrawn = false
  #pings: Timer | undefined
  #heardAt = 0

  constructor(terminal: ViewedTerminal, size: TerminalSize | null, onClosed: () => void) {
    this.#terminal = terminal
    this.#size = size
    this.#onClosed = onClosed
  }

  /** Columns and rows that it has room for; null if it has not said. */
  get size(): TerminalSize | null {
    return this.#size
  }

  /** Whether the program has to wait for it, because it reads more slowly than that prints. */
  get isFull(): boolean {
    return !this.#tellsWhatIsDrawn && this.#bufferedBytes >= FULL_BYTES
  }

  /** Whether it has missed output. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** Whether it has been sent everything that was printed. */
  get isCurrent(): boolean {
    return this.#waiting === null && !this.#isBehind
  }

  /** Whether it has missed output, and now reads again, so that it needs the screen anew. */
  get needsScreen(): boolean {
    return this.#isBehind && this.#waiting === null && this.#bufferedBytes === 0
  }

  /** Passes output on. */
  send(data: Uint8Array): void {
    if (this.#isBehind || this.#isClosed) return
    const most = this.#tellsWhatIsDrawn ? MOST_UNDRAWN_BYTES : MOST_BYTES
    if (this.#bufferedBytes + data.length > most) this.fallBehind()
    else if (this.#waiting === null) this.#sendNow(data)
    else {
      this.#waiting.push(data)
      this.#waitingBytes += data.length
    }
  }

  /** Drops what it has not been sent, and what is printed until it reads again. A screen that is being made comes. */
  fallBehind(): void {
    this.#isBehind = true
    this.#waiting?.splice(0)
    this.#waitingBytes = 0
  }

  /**
   * Keeps output from now on.
   *
   * @returns what is kept, for the call of `show` with the screen of this moment
   */
  awaitScreen(): Uint8Array[] {
    this.#isBehind = false
    this.#waiting = []
    this.#waitingBytes = 0
    return this.#waiting
  }

  /**
   * Sends a screen, then what was printed since. Nothing but the screen if it has fallen behind meanwhile.
   *
   * @param since what `awaitScreen` has returned
   * @param isFirst whether it has shown nothing before
   */
  show(screen: Uint8Array, since: Uint8Array[], isFirst: boolean): void {
    if (this.#waiting !== since) return
    this.#waiting = null
    this.#waitingBytes = 0
    this.#sendNow(isFirst ? screen : Buffer.concat([Buffer.from(CLEAR), screen]))
    for (const data of since) this.#sendNow(data)
  }

  /** Says how the program has ended, and closes the socket. */
  exit(exitCode: number): void {
    this.#socket?.send(JSON.stringify({ exit: exitCode }))
    this.close(SOCKET_ENDS.exited)
  }

  /** Closes the socket. Further calls have no effect. */
  close({ code, reason }: SocketEnd): void {
    if (this.#isClosed) return
    this.#end()
    this.#socket?.close(code, reason)
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#heardAt = performance.now()
    this.#pings = setInterval(() => this.#ping(), PING_MS)
    this.#pings.unref()
    // It may have been closed before it was open.
    if (this.#isClosed) socket.terminate()
    else this.#terminal.join(this)
  }

  message(message: string | Buffer): void {
    if (this.#isClosed) return
    if (typeof message !== 'string') {
      this.#terminal.type(this, message)
      return
    }
    const frame = frameOf(message)
    if (frame === null) this.close(SOCKET_ENDS.badFrame)
    else if ('drawn' in frame) {
      this.#tellsWhatIsDrawn = true
      this.#undrawn = Math.max(0, this.#undrawn - frame.drawn)
      this.drained()
    } else {
      this.#size = frame
      this.#terminal.resized()
    }
  }

  drained(): void {
    if (!this.#isClosed) this.#terminal.drained(this)
  }

  ponged(): void {
    this.#heardAt = performance.now()
  }

  closed(): void {
    this.#end()
  }

  get #bufferedBytes(): number {
    const onTheWay = this.#tellsWhatIsDrawn ? this.#undrawn : (this.#socket?.getBufferedAmount() ?? 0)
    return this.#waitingBytes + onTheWay
  }

  #sendNow(data: Uint8Array): void {
    this.#undrawn += data.length
    this.#socket?.send(data)
  }

  #ping(): void {
    if (performance.now() - this.#heardAt > SILENCE_MS) {
      const socket = this.#socket
      this.close(SOCKET_ENDS.silent)
      socket?.terminate()
    } else this.#socket?.ping()
  }

  #end(): void {
    clearInterval(this.#pings)
    if (this.#isClosed) return
    this.#isClosed = true
    this.#waiting = null
    this.#terminal.leave(this)
    this.#onClosed()
  }
}

/** Returns what a viewer's text frame says: its size, or how many more bytes it has drawn; null if it is neither. */
function frameOf(frame: string): TerminalSize | { readonly drawn: number } | null {
  let value: unknown
  try {
    value = JSON.parse(frame)
  } catch {
    return null
  }
  const { resize, drawn } = fieldsOf(value)
  if (resize === undefined && Number.isSafeInteger(drawn) && Number(drawn) >= 0)
    return { drawn: Number(drawn) }
  if (!Array.isArray(resize) || resize.length !== 2 || !resize.every(isCellCount)) return null
  const [columns, rows] = resize
  return { columns, rows }
}

const isCellCount = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_CELLS
