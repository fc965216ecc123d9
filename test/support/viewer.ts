import { openEmulator } from '../../src/runtime/emulator.ts'
import type { TestBerth } from './berth.ts'
import { until } from './processes.ts'

/** A viewer of a terminal, under test. */
export class TestViewer {
  readonly #socket: WebSocket
  readonly #decoder = new TextDecoder()
  readonly #opened = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<{ code: number; reason: string }>()
  /** Everything that it was sent as bytes, as text. */
  text = ''
  /** Sizes of the messages with bytes. */
  readonly messages: number[] = []
  /** The text frames. */
  readonly frames: string[] = []

  /** Attaches to a terminal; resolves when the screen is there. */
  static async attach(
    berth: TestBerth,
    path: string,
    headers: Record<string, string> = { authorization: `Bearer ${berth.info.api_key}` },
  ): Promise<TestViewer> {
    const viewer = new TestViewer(`${berth.info.base_url.replace('http', 'ws')}${path}`, headers)
    await viewer.#opened.promise
    await until(() => viewer.messages.length > 0, 'the first screen')
    return viewer
  }

  private constructor(url: string, headers: Record<string, string>) {
    this.#socket = new WebSocket(url, { headers } as never)
    this.#socket.binaryType = 'nodebuffer'
    this.#socket.onopen = () => this.#opened.resolve()
    this.#socket.onmessage = ({ data }: MessageEvent<string | Buffer>) => {
      if (typeof data === 'string') this.frames.push(data)
      else {
        this.messages.push(data.length)
        this.text += this.#decoder.decode(data, { stream: true })
      }
    }
    this.#socket.onclose = ({ code, reason }) => {
      this.#opened.reject(new Error(`closed: ${code} ${reason}`))
      this.#closed.resolve({ code, reason })
    }
    this.#opened.promise.catch(() => {})
  }

  /** Resolves when the socket is closed. */
  get closed(): Promise<{ code: number; reason: string }> {
    return this.#closed.promise
  }

  type(text: string | Uint8Array): void {
    this.#socket.send(typeof text === 'string' ? new TextEncoder().encode(text) : text)
  }

  send(frame: string): void {
    this.#socket.send(frame)
  }

  resize(columns: number, rows: number): void {
    this.send(JSON.stringify({ resize: [columns, rows] }))
  }

  /** Waits until this has been shown. */
  async shows(text: string, ms?: number): Promise<void> {
    await until(() => this.text.includes(text), `${JSON.stringify(text)} on the terminal`, ms).catch(
      (error) => {
        throw new Error(`${error.message}; it shows ${JSON.stringify(this.text.slice(-500))}`)
      },
    )
  }

  /** Returns the rows that a terminal of this size shows, without blanks at their ends. */
  async screen(columns = 80, rows = 24): Promise<string[]> {
    return screenOf(this.text, columns, rows)
  }

  close(): void {
    this.#socket.close()
  }

  /** Closes it without a word. */
  terminate(): void {
    this.#socket.terminate()
  }
}

/** Returns the rows that a terminal shows after some output. */
export async function screenOf(output: string, columns = 80, rows = 24): Promise<string[]> {
  const emulator = await openEmulator({ columns, rows, scrollback: 0 })
  await emulator.draw(new TextEncoder().encode(output))
  const { active } = emulator.terminal.buffer
  const lines = Array.from({ length: rows }, (_, row) => active.getLine(active.baseY + row))
  emulator.terminal.dispose()
  return lines.map((line) => line?.translateToString(true) ?? '')
}
