import { FitAddon } from '@xterm/addon-fit'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebglAddon } from '@xterm/addon-webgl'
import { Terminal as Emulator, type ITheme } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'preact/hooks'
import { BoundedEmulator } from '../../../runtime/bounded-emulator.ts'
import { useDashboard } from '../../dashboard.ts'
import type { Terminal } from '../../store/store.ts'

/** Milliseconds for which a size has to stay before the terminal takes it: each one makes its program draw again. */
const SETTLE_MS = 80

/** Characters that the emulator keeps for screen readers to say, about as many as a screen has. @bound reader */
const MOST_SAID = 2_000

/** Properties of a terminal's screen. */
export interface TerminalViewProps {
  serverId: string
  terminal: Terminal
}

/** Shows a terminal, and types on it. */
export function TerminalView({ serverId, terminal }: TerminalViewProps) {
  const { context } = useDashboard()
  const place = useRef<HTMLDivElement>(null)
  const [end, setEnd] = useState<string | null>(null)
  useEffect(() => {
    if (!place.current) return
    allowStyles(context.nonce)
    const emulator = newEmulator()
    const fit = new FitAddon()
    emulator.loadAddon(fit)
    const bounded = new BoundedEmulator(emulator, new Unicode11Addon())
    emulator.open(place.current)
    const stopBounding = boundSaid(place.current)
    // The terminal takes all other keys, also the one that leads to the next control (WCAG 2.1.2).
    emulator.textarea?.setAttribute('aria-description', 'Ctrl+F6 leaves the terminal.')
    emulator.attachCustomKeyEventHandler(({ type, key, ctrlKey }) => {
      if (key !== 'F6' || !ctrlKey) return true
      if (type === 'keydown') leave(place.current)
      return false
    })
    drawByGraphicsCard(emulator)
    fit.fit()
    const path = `/servers/${encodeURIComponent(serverId)}/terminals/${encodeURIComponent(terminal.id)}/attach`
    const viewer = new Viewer(`${context.base_url.replace(/^http/, 'ws')}${path}`, bounded, setEnd)
    const stopFitting = whenSettled(place.current, () => fit.fit())
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const recolour = (): void => {
      emulator.options.theme = themeOf(place.current)
    }
    recolour()
    scheme.addEventListener('change', recolour)
    emulator.focus()
    return () => {
      scheme.removeEventListener('change', recolour)
      stopFitting()
      stopBounding()
      viewer.close()
      emulator.dispose()
    }
  }, [context, serverId, terminal.id])
  return (
    <div class="terminal">
      <section class="terminal-screen" ref={place} aria-label={`Terminal ${terminal.name}`} />
      {end !== null && (
        <p class="terminal-end" role="status">
          {end}
        </p>
      )}
    </div>
  )
}

/**
 * Calls `fit` when an element has kept its size for a while and for a whole frame. On a busy machine a frame takes longer
 * than that while, and the page's layout may take two.
 *
 * @returns a function that ends it
 */
function whenSettled(element: Element, fit: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let frame = 0
  const stop = (): void => {
    clearTimeout(timer)
    cancelAnimationFrame(frame)
  }
  const afterFrame = (next: () => void): void => {
    frame = requestAnimationFrame(next)
  }
  const sizes = new ResizeObserver(() => {
    stop()
    // Sizes are observed at the end of a frame: in the second one those of the first are known.
    timer = setTimeout(() => afterFrame(() => afterFrame(fit)), SETTLE_MS)
  })
  sizes.observe(element)
  return () => {
    sizes.disconnect()
    stop()
  }
}

/**
 * Keeps what screen readers are to say short. The emulator adds all that is printed until twenty lines have ended or a key is
 * typed: programs that end no line, such as those that redraw the screen, would make it so long that its layout takes seconds.
 *
 * @returns a function that ends it
 */
function boundSaid(screen: Element): () => void {
  const said = screen.querySelector('.live-region')
  const bound = (): void => {
    const text = said?.textContent ?? ''
    if (said && text.length > MOST_SAID) said.textContent = text.slice(-MOST_SAID)
  }
  const changes = new MutationObserver(bound)
  if (said) changes.observe(said, { childList: true })
  return () => changes.disconnect()
}

/** Moves the focus from a terminal to the tabs above it. */
function leave(screen: HTMLElement | null): void {
  const tabs = screen?.closest('.terminals')?.querySelector('.terminal-tabs')
  const tab = tabs?.querySelector<HTMLElement>('[aria-current="true"]')
  if (tab) tab.focus()
  else screen?.querySelector<HTMLElement>(':focus')?.blur()
}

/** Makes an emulator. */
function newEmulator(): Emulator {
  return new Emulator({
    allowProposedApi: true,
    cursorBlink: false,
    fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace',
    fontSize: 13,
    scrollback: 10_000,
    screenReaderMode: true,
    minimumContrastRatio: 4.5,
  })
}

/**
 * Draws by WebGL where a graphics card does it: several times as fast. Without one, where the processor would draw every
 * pixel, or when it is lost, the DOM does it.
 */
function drawByGraphicsCard(emulator: Emulator): void {
  const canvas = document.createElement('canvas')
  if (canvas.getContext('webgl2', { failIfMajorPerformanceCaveat: true }) === null) return
  try {
    const webgl = new WebglAddon()
    webgl.onContextLoss(() => webgl.dispose())
    emulator.loadAddon(webgl)
  } catch {
    // The emulator goes on with its own renderer.
  }
}

/** Returns the colours of the page for an emulator. */
function themeOf(element: Element | null): ITheme {
  const style = getComputedStyle(element ?? document.documentElement)
  const token = (name: string): string => style.getPropertyValue(name).trim()
  return {
    background: token('--terminal-ground'),
    foreground: token('--terminal-text'),
    cursor: token('--terminal-text'),
    cursorAccent: token('--terminal-ground'),
    selectionBackground: token('--terminal-selection'),
  }
}

/** Milliseconds before the attempt to attach again. */
const RETRY_MS = 1_000

/** Bytes after which the drawn bytes are counted. */
const PIECE_BYTES = 8 * 1024

/** Drawn bytes after which they are reported to berth, if more are waiting. */
const REPORT_BYTES = 64 * 1024

/** Connects an emulator to a terminal of berth (docs/terminals.md, "Attach"): a viewer of it. */
class Viewer {
  readonly #url: string
  readonly #bounded: BoundedEmulator<Emulator>
  /** Resolves when all that has arrived is drawn. */
  #drawn: Promise<void> = Promise.resolve()
  readonly #onEnd: (text: string | null) => void
  #socket: WebSocket | null = null
  /** Bytes that wait to be drawn, and drawn bytes that were not reported to berth. */
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

  /** Draws bytes, and reports to berth when they are drawn: berth skips output that arrives faster. */
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
        if (this.#undrawn > 0 && this.#untold < REPORT_BYTES) continue
        this.#send(JSON.stringify({ drawn: this.#untold }))
        this.#untold = 0
      }
    })
  }

  /** Draws bytes. If the emulator fails, it starts again after the piece at which it has failed. */
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

/**
 * Gives every style element that is made from now on the nonce that the page's policy asks for (CSP, nonce-source). The
 * terminal's emulator makes some, and takes no nonce.
 */
function allowStyles(nonce: string): void {
  const create = Document.prototype.createElement
  document.createElement = (tag: string, options?: ElementCreationOptions): HTMLElement => {
    const element = create.call(document, tag, options)
    if (element instanceof HTMLStyleElement) element.nonce = nonce
    return element
  }
}
