import type { Terminal as Emulator } from '@xterm/xterm'

/** Milliseconds before the attempt to attach again. */
const RETRY_MS = 1_000

/** Connects an emulator to a terminal of berth (docs/terminals.md, "Attach"): a viewer of it. */
export class Viewer {
  readonly #url: string
  readonly #emulator: Emulator
  readonly #onEnd: (text: string | null) => void
  #socket: WebSocket | null = null
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
    emulator.onResize(({ cols, rows }) => this.#send(JSON.stringify({ resize: [cols, rows] })))
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
    let isFirst = true
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') {
        this.#exitCode = (JSON.parse(data) as { exit?: number }).exit ?? null
        return
      }
      // The first message is the screen with its scrollback.
      if (isFirst) this.#emulator.reset()
      isFirst = false
      this.#emulator.write(new Uint8Array(data as ArrayBuffer))
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

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data)
  }
}
