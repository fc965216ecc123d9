import { FitAddon } from '@xterm/addon-fit'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebglAddon } from '@xterm/addon-webgl'
import { Terminal as Emulator, type ITheme } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'preact/hooks'
import { BoundedEmulator } from '../../../../runtime/bounded-emulator.ts'
import { allowStyles } from '../../../components/style-nonce.ts'
import { useDashboard } from '../../../dashboard.ts'
import type { Terminal } from '../../../store/store.ts'
import { Viewer } from './viewer.ts'

/** Milliseconds for which a size has to stay before the terminal takes it: each one makes its program draw anew. */
const SETTLE_MS = 80

/** Characters that the emulator keeps for screen readers to say, about as many as a screen has. */
const MOST_SAID = 2_000

/** Properties of a terminal's screen. */
export interface ScreenViewProps {
  serverId: string
  terminal: Terminal
}

/** Shows a terminal, and types on it. */
export function ScreenView({ serverId, terminal }: ScreenViewProps) {
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
