import type { Terminal as Emulator } from '@xterm/xterm'

/** Milliseconds before the attempt to attach again. */
const RETRY_MS = 1_000

/** Bytes that the emulator is given at a time: it draws each piece without a pause. */
const PIECE_BYTES = 8 * 1024

/** Drawn bytes after which berth is told of them, if more are waiting. */
const TELL_BYTES = 64 * 1024

/** Connects an emulator to a terminal of berth (docs/terminals.md, "Attach"): a viewer of it. */
export class Viewer {
  readonly #url: string
  readonly #emulator: Emulator
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
  constructor(url: string, emulator: Emulator, onEnd: (text: string | null) => void) {
    this.#url = url
    this.#emulator = emulator
    this.#onEnd = onEnd
    emulator.onData((text) => this.#send(new TextEncoder().encode(text)))
    emulator.onBinary((text) => this.#send(Uint8Array.from(text, (character) => character.charCodeAt(0))))
    emulator.onResize(() => this.#sendSize())
    this.#connect()
  }

  /** Leaves the terminal, which runs on. */
  close(): void {
    this.#isClosed = true
    this.#socket?.close()
  }

  #connect(): void {
    if (this.#isClosed) return
    const { cols, rows } = this.#emulator
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
      if (isFirst) this.#emulator.reset()
      isFirst = false
      this.#draw(socket, new Uint8Array(data as ArrayBuffer))
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
  #draw(socket: WebSocket, data: Uint8Array): void {
    this.#undrawn += data.length
    for (let at = 0; at === 0 || at < data.length; at += PIECE_BYTES) {
      const piece = data.subarray(at, at + PIECE_BYTES)
      this.#emulator.write(piece, () => {
        this.#undrawn -= piece.length
        if (socket !== this.#socket) return
        this.#untold += piece.length
        if (this.#undrawn > 0 && this.#untold < TELL_BYTES) return
        this.#send(JSON.stringify({ drawn: this.#untold }))
        this.#untold = 0
      })
    }
  }

  #resize(): string {
    return JSON.stringify({ resize: [this.#emulator.cols, this.#emulator.rows] })
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
