import type { Terminal as Emulator } from '@xterm/xterm'
import type { BoundedEmulator } from '../../../../runtime/bounded-emulator.ts'

/** Milliseconds before the attempt to attach again. */
const RETRY_MS = 1_000

/** Bytes after which it is counted what is drawn. */
const PIECE_BYTES = 8 * 1024

/** Drawn bytes after which berth is told of them, if more are waiting. */
const TELL_BYTES = 64 * 1024

/** Connects an emulator to a terminal of berth (docs/terminals.md, "Attach"): a viewer of it. */
export class Viewer {
  readonly #url: string
  readonly #bounded: BoundedEmulator<Emulator>
  /** Resolves when all that has arrived is drawn. */
  #drawn: Promise<void> = Promise.resolve()
  readonly #onEnd: (text: string | null) => void
  #socket: WebSocket | null = null
  /** Bytes that wait to be drawn, and drawn bytes that berth was not told of. */
  #undrawn = 0
  #untold = 0
  /** The size that berth knows, as a message that sets it. */
  #size = ''
  #exitCode: number | null = null
  #isClosed = false

  /**
   * @param onEnd called with a sentence when the terminal has ended or is not reachable, and with null when it is again
   */
  constructor(url: string, bounded: BoundedEmulator<Emulator>, onEnd: (text: string | null) => void) {
    this.#url = url
    this.#bounded = bounded
    this.#onEnd = onEnd
    const { terminal: emulator } = bounded
    emulator.onData((text) => this.#send(new TextEncoder().encode(text)))
    emulator.onBinary((text) => this.#send(Uint8Array.from(text, (character) => character.charCodeAt(0))))
    emulator.onResize(() => this.#sendSize())
    this.#connect()
  }

  /** Leaves the terminal, which runs on. */
  close(): void {
    this.#isClosed = true
    this.#bounded.stop()
    this.#socket?.close()
  }

  #connect(): void {
    if (this.#isClosed) return
    const { cols, rows } = this.#bounded.terminal
    const socket = new WebSocket(`${this.#url}?columns=${cols}&rows=${rows}`)
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    this.#size = this.#resize()
    // It may have been resized while it was connecting.
    socket.onopen = () => this.#sendSize()
    this.#untold = 0
    let isFirst = true
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') {
        this.#exitCode = (JSON.parse(data) as { exit?: number }).exit ?? null
        return
      }
      // The first message is the screen with its scrollback.
      this.#draw(socket, new Uint8Array(data as ArrayBuffer), isFirst)
      isFirst = false
      this.#onEnd(null)
    }
    socket.onclose = ({ code, reason }) => {
      if (this.#isClosed) return
      if (this.#exitCode !== null) this.#onEnd(`The program has ended with exit code ${this.#exitCode}.`)
      else if (code >= 4_000 || code === 1_000) this.#onEnd(`Not attached: ${reason}.`)
      else {
        this.#onEnd('The connection is lost. Attaching again …')
        setTimeout(() => this.#connect(), RETRY_MS)
      }
    }
  }

  /** Draws bytes, and tells berth when it is done: what comes faster than that is skipped. */
  #draw(socket: WebSocket, data: Uint8Array, isFirst: boolean): void {
    this.#undrawn += data.length
    this.#drawn = this.#drawn.then(async () => {
      if (isFirst) this.#bounded.reset()
      for (let at = 0; at === 0 || at < data.length; at += PIECE_BYTES) {
        const piece = data.subarray(at, at + PIECE_BYTES)
        await this.#drawPiece(piece)
        this.#undrawn -= piece.length
        if (socket !== this.#socket) continue
        this.#untold += piece.length
        if (this.#undrawn > 0 && this.#untold < TELL_BYTES) continue
        this.#send(JSON.stringify({ drawn: this.#untold }))
        this.#untold = 0
      }
    })
  }

  /** Draws bytes. If the emulator fails, it begins anew after the piece at which it has failed. */
  async #drawPiece(piece: Uint8Array): Promise<void> {
    let rest = piece
    for (;;) {
      const fault = await this.#bounded.draw(rest)
      if (fault === null) return
      this.#bounded.reset()
      rest = rest.subarray(fault.to)
    }
  }

  #resize(): string {
    const { cols, rows } = this.#bounded.terminal
    return JSON.stringify({ resize: [cols, rows] })
  }

  /** Sends the size, unless berth knows it. */
  #sendSize(): void {
    const size = this.#resize()
    if (size === this.#size || this.#socket?.readyState !== WebSocket.OPEN) return
    this.#size = size
    this.#send(size)
  }

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data)
  }
}
