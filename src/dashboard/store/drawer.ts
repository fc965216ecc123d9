import { type ReadonlySignal, signal } from '@preact/signals'

/** The parts of the drawer. */
export const DRAWER_PARTS = ['requests', 'shell', 'object'] as const
export type DrawerPart = (typeof DRAWER_PARTS)[number]

/** Heights in pixels: at least, and until a person chooses another. */
export const LEAST_HEIGHT = 140
const FIRST_HEIGHT = 300

/** Where the browser keeps the part and the height: nothing of the instance. */
const KEPT_AS = 'berth.drawer'

/** Whether the drawer below the screen is open, and what it shows. The browser keeps its part and its height. */
export class Drawer {
  readonly #isOpen = signal(false)
  readonly #part = signal<DrawerPart>('object')
  readonly #height = signal(FIRST_HEIGHT)
  readonly #about = signal<string | null>(null)
  /** What had the focus before it was opened. */
  #before: Element | null = null

  constructor() {
    const { part, height } = readKept()
    if (DRAWER_PARTS.some((one) => one === part)) this.#part.value = part as DrawerPart
    if (typeof height === 'number') this.#height.value = height
  }

  get isOpen(): ReadonlySignal<boolean> {
    return this.#isOpen
  }

  get part(): ReadonlySignal<DrawerPart> {
    return this.#part
  }

  /** In pixels. */
  get height(): ReadonlySignal<number> {
    return this.#height
  }

  /** The address of its object: that of the row that was selected when it was opened; null for the object of the screen. */
  get about(): ReadonlySignal<string | null> {
    return this.#about
  }

  /** Opens it. @param about the address of its object; null for the object of the screen */
  open(about: string | null): void {
    this.#before = document.activeElement
    this.#about.value = about
    this.#isOpen.value = true
  }

  /** Closes it. The focus is where it was before. */
  close(): void {
    this.#isOpen.value = false
    if (this.#before instanceof HTMLElement && this.#before.isConnected) this.#before.focus()
    this.#before = null
  }

  /** Follows the screen from now on. */
  followScreen(): void {
    this.#about.value = null
  }

  /** Shows another part. */
  show(part: DrawerPart): void {
    this.#part.value = part
    this.#keep()
  }

  /** Makes it higher or lower. */
  resize(height: number): void {
    this.#height.value = Math.round(Math.max(LEAST_HEIGHT, Math.min(innerHeight * 0.75, height)))
    this.#keep()
  }

  #keep(): void {
    try {
      localStorage.setItem(KEPT_AS, JSON.stringify({ part: this.#part.peek(), height: this.#height.peek() }))
    } catch {
      // A browser that keeps nothing shows it as at first.
    }
  }
}

function readKept(): { part?: unknown; height?: unknown } {
  try {
    return (JSON.parse(localStorage.getItem(KEPT_AS) ?? '{}') ?? {}) as object
  } catch {
    // The browser keeps nothing, or not JSON: the drawer is as at first.
    return {}
  }
}
