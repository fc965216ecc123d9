import type { TerminalSize } from '../../compute/driver.ts'
import type { Emulator, EmulatorSize, Emulators } from './emulators.ts'
import { PendingOutput } from './pending-output.ts'

/** Most rows above the screen, and most bytes of all rows together. A cell of the emulator takes 12. */
const MAX_SCROLLBACK = 10_000
const MAX_BYTES = 4 * 1024 * 1024
const CELL_BYTES = 12

/** Bytes of output from which it is drawn, even if nobody asks for the screen. */
const DRAW_BYTES = 256 * 1024

/** Bytes of output that is not drawn from which the program is held up. */
const FULL_BYTES = 4 * 1024 * 1024

/** Most bytes of output that are shown to a first viewer as they are. */
const RAW_BYTES = 192 * 1024

/** Bytes of output from which a program waits for its first viewer; fewer, since one more piece comes. */
const UNSEEN_BYTES = 64 * 1024

/**
 * The screen of a terminal, with its scrollback. What the program prints is kept and drawn later, when there is much of
 * it or somebody asks for the screen: a shell's prompt needs no emulator.
 */
export class TerminalScreen {
  readonly #emulators: Emulators
  /** Called when there is room for more output. */
  readonly #onRoom: () => void
  readonly #pending: PendingOutput
  #emulator: Emulator | null = null
  /** The size for which the pending output begins. */
  #size: TerminalSize
  #isDrawing = false
  /** Whether plain lines that are followed by enough others leave no trace on what is drawn. */
  #takesPlainText = true
  /** Whether all output so far is pending, and nobody has seen it. */
  #isUnseen = true
  /** The last screen, when the program has ended; null before. */
  #final: Promise<Uint8Array> | null = null
  #isDisposed = false

  constructor(size: TerminalSize, emulators: Emulators, onRoom: () => void) {
    this.#size = size
    this.#emulators = emulators
    this.#onRoom = onRoom
    this.#pending = new PendingOutput()
  }

  /** Whether the program has to wait until more is drawn. */
  get isFull(): boolean {
    return this.#pending.bytes >= FULL_BYTES
  }

  /** Whether so much was printed that nobody has seen that a first viewer would soon miss some. */
  get isLongUnseen(): boolean {
    return this.#isUnseen && this.#pending.bytes >= UNSEEN_BYTES
  }

  /** Adds output. */
  write(data: Uint8Array): void {
    this.#pending.add(data)
    if (this.#emulator !== null || this.#pending.bytes >= DRAW_BYTES) void this.#draw()
  }

  /** Changes the size, from the output on that follows. */
  resize(size: TerminalSize): void {
    this.#isUnseen &&= this.#pending.bytes === 0
    this.#pending.addMark((emulator) => {
      this.#size = size
      return emulator.resize(emulatorSize(size))
    })
    if (this.#emulator !== null) void this.#draw()
  }

  /**
   * Returns what draws the screen of this moment on an empty terminal, scrollback included. For the first viewer that
   * is the output itself, if it is short: so its terminal also answers what the program has asked it.
   */
  async snapshot(): Promise<Uint8Array> {
    if (this.#final !== null) return this.#final
    if (this.#isUnseen && this.#emulator === null && this.#pending.bytes <= RAW_BYTES) {
      this.#isUnseen = false
      return this.#pending.copy()
    }
    const screen = Promise.withResolvers<Uint8Array>()
    this.#pending.addMark(async (emulator) => screen.resolve(await emulator.serialize()))
    void this.#draw()
    return screen.promise
  }

  /** Keeps only the last screen: the program has ended. */
  async finish(): Promise<void> {
    // What is short needs no emulator, whoever has seen it.
    this.#isUnseen ||= this.#emulator === null && !this.#isDrawing && this.#pending.isPlain
    this.#final = this.snapshot()
    await this.#final
    this.#emulator?.close()
    this.#emulator = null
  }

  /** Frees everything. */
  dispose(): void {
    this.#isDisposed = true
    this.#emulator?.close()
    this.#emulator = null
  }

  /** Draws what is pending, in order, until nothing is. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return
    this.#isDrawing = true
    this.#isUnseen = false
    while (!this.#pending.isEmpty && !this.#isDisposed) {
      const emulator = this.#openEmulator()
      if (this.#takesPlainText) this.#pending.dropPlainLines(this.#rowsKept)
      const next = this.#pending.take()
      if (next instanceof Uint8Array) this.#takesPlainText = await emulator.write(next)
      else await next(emulator)
      if (!this.isFull) this.#onRoom()
    }
    this.#isDrawing = false
  }

  /** Returns the emulator. One that was lost is replaced, with an empty screen. */
  #openEmulator(): Emulator {
    if (this.#emulator === null || this.#emulator.isLost)
      this.#emulator = this.#emulators.open(emulatorSize(this.#size))
    return this.#emulator
  }

  /**
   * Lines after which nothing is left of earlier ones: those of the scrollback and the screen, and once more of the
   * screen, whose lower rows may not be empty.
   */
  get #rowsKept(): number {
    const { rows, scrollback } = emulatorSize(this.#size)
    return scrollback + 2 * rows
  }
}

/** Returns the size of the emulator of a terminal. One so large that it would exceed the bound is drawn cut. */
function emulatorSize({ columns, rows }: TerminalSize): EmulatorSize {
  const most = Math.floor(MAX_BYTES / CELL_BYTES / columns)
  const drawn = Math.max(1, Math.min(rows, most))
  return { columns, rows: drawn, scrollback: Math.max(0, Math.min(MAX_SCROLLBACK, most - drawn)) }
}
