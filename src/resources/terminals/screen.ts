import type {
  Emulator,
  EmulatorSize,
  Emulators,
  InputModes,
  ScreenText,
  WatchRequest,
  WriteResult,
} from '../../compute/emulators/emulators.ts'
import type { TerminalSize } from '../../compute/sandbox.ts'
import { PendingOutput } from './pending-output.ts'

/** Most rows above the screen, and most bytes of all rows together. A cell of the emulator takes 12. @bound program */
const MAX_SCROLLBACK = 10_000
const MAX_BYTES = 4 * 1024 * 1024
/** Most rows of the screen that are drawn. To scroll takes as long as the screen has rows. @bound program */
const MAX_ROWS = 1_000
const CELL_BYTES = 12

/**
 * Bytes of output from which plain lines that have left the scrollback are dropped: drawing takes longer than printing.
 * If as much is left, it is drawn, even if nobody asks for the screen.
 */
const MUCH_BYTES = 2 * 1024 * 1024

/** Milliseconds without output after which it is drawn, if that has to be soon. */
const PAUSE_MS = 5

/** Most bytes that are drawn at a time. */
const DRAW_BYTES = 256 * 1024

/** Bytes that are drawn at a time while a pattern is looked for: no more than the scrollback keeps. */
const WATCHED_BYTES = 16 * 1024

/** Bytes of output that is not drawn from which the program is held up. */
const FULL_BYTES = 4 * 1024 * 1024

/** Milliseconds for which a program waits for a response of its terminal. */
const ANSWER_MS = 3_000

/** Most bytes of output that are shown to a first viewer as they are. */
const RAW_BYTES = 192 * 1024

/** Bytes of output from which a program waits for its first viewer; fewer, since one more piece comes. */
const UNSEEN_BYTES = 64 * 1024

/** Learns of a screen. */
interface ScreenListener {
  /** Called when there is room for more output. */
  drained(): void
  /** Called with the response to a program that has just asked its terminal something. */
  answered(answer: string): void
}

/** A pattern that is looked for. */
export interface ScreenWatch {
  readonly modes: InputModes
  /** Why the pattern is refused; null if it is not. */
  readonly refusal: string | null
  /** Ends it. */
  end(): void
}

/** The modes of a terminal that has not drawn anything yet. */
const PLAIN_MODES: InputModes = { cursorKeys: false, paste: false }

/** The result of drawing with an emulator that is lost. */
const NOTHING_DRAWN: WriteResult = { plain: false, matches: [], rowEvents: [], modes: PLAIN_MODES }

/**
 * The screen of a terminal, with its scrollback. What the program prints is kept and drawn later, when there is much of
 * it or somebody asks for the screen: a shell's prompt needs no emulator.
 */
export class KeptScreen {
  readonly #emulators: Emulators
  readonly #listener: ScreenListener
  readonly #pending: PendingOutput
  #emulator: Emulator | null = null
  /** The size for which the pending output begins. */
  #size: TerminalSize
  #isDrawing = false
  /** Whether output is drawn soon, even if nobody asks for the screen. */
  #isDrawnSoon = false
  #pause: Timer | undefined
  /** Bytes of pending output that are to be drawn now. */
  #due = 0
  /** When the oldest output that is not drawn was added. */
  #pendingSince = 0
  /** Bytes at the beginning of the pending output that viewers have had, whose terminals respond to what is asked in it. */
  #viewedBytes = 0
  /** Whether what is drawn now is of those. */
  #isViewed = false
  /** Whether plain lines that are followed by enough others leave no trace on what is drawn. */
  #takesPlainText = true
  #modes = PLAIN_MODES
  /** Whether all output so far is pending, and nobody has seen it. */
  #isUnseen = true
  /** Listeners for patterns that are found, by the numbers of their watches. */
  readonly #watches = new Map<number, (match: string) => void>()
  #lastWatch = 0
  /** What ends the requests to the emulator if the screen is dropped. */
  readonly #unanswered = new Set<(result: null) => void>()
  /** The last screen, when the program has ended; null before. */
  #final: Promise<Uint8Array> | null = null
  #isDisposed = false

  constructor(size: TerminalSize, emulators: Emulators, listener: ScreenListener) {
    this.#size = size
    this.#emulators = emulators
    this.#listener = listener
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
    if (this.#pending.bytes === 0) this.#pendingSince = performance.now()
    this.#pending.add(data)
    if (this.#pending.bytes >= MUCH_BYTES || this.#watches.size > 0) void this.#draw()
    else if (this.#isDrawnSoon) this.#drawSoon()
  }

  /**
   * Draws what is pending, and from now on everything soon.
   *
   * @param wasViewed whether viewers have had what is pending
   */
  drawSoon(wasViewed: boolean): void {
    if (wasViewed) this.#viewedBytes = this.#pending.bytes
    this.#isDrawnSoon = true
    if (this.#final === null) this.#drawSoon()
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
    return (await this.#ask((emulator) => emulator.serialize())) ?? new Uint8Array(0)
  }

  /** Returns the screen of this moment as text, with the last `lines` rows of scrollback; null if it is dropped. */
  read(lines: number): Promise<ScreenText | null> {
    return this.#ask((emulator) => emulator.read(lines))
  }

  /** The modes of the terminal at the end of what is drawn. */
  get modes(): InputModes {
    return this.#modes
  }

  /** Returns the screen as far as it is drawn; null if it is dropped. */
  peek(lines: number): Promise<ScreenText | null> {
    return this.#emulator === null ? this.read(lines) : this.#emulator.peek(lines)
  }

  /**
   * Looks for a pattern, on the screen as it is when all earlier output is drawn, and in what is drawn later.
   *
   * @param onMatch called with the text that matches, maybe more than once
   */
  async watch(request: WatchRequest, onMatch: (match: string) => void): Promise<ScreenWatch> {
    this.#lastWatch += 1
    const number = this.#lastWatch
    if (request.pattern !== null && this.#final === null) this.#watches.set(number, onMatch)
    const result = await this.#ask((emulator) => emulator.watch(number, request))
    if (result?.match != null) onMatch(result.match)
    return {
      modes: result?.modes ?? PLAIN_MODES,
      refusal: result?.refusal ?? null,
      end: () => {
        if (this.#watches.delete(number) && this.#final === null)
          void this.#ask((emulator) => emulator.unwatch(number))
      },
    }
  }

  /** Keeps only the last screen: the program has ended. */
  async finish(): Promise<void> {
    // Short output needs no emulator, whether or not a viewer has had it.
    this.#isUnseen ||= this.#emulator === null && !this.#isDrawing && !this.#pending.hasMarks
    this.#final = this.snapshot()
    await this.#final
    this.#emulator?.close()
    this.#emulator = null
  }

  /** Frees everything. */
  dispose(): void {
    this.#isDisposed = true
    clearTimeout(this.#pause)
    this.#emulator?.close()
    this.#emulator = null
    for (const end of this.#unanswered) end(null)
  }

  /** Returns what the emulator responds when all output so far is drawn; null if the screen is dropped. */
  async #ask<Result>(request: (emulator: Emulator) => Promise<Result | null>): Promise<Result | null> {
    if (this.#isDisposed) return null
    if (this.#final !== null) return this.#askAboutEnd(await this.#final, request)
    const { promise, resolve } = Promise.withResolvers<Result | null>()
    this.#unanswered.add(resolve)
    this.#pending.addMark(async (emulator) => resolve(await request(emulator)))
    void this.#draw()
    return promise.finally(() => this.#unanswered.delete(resolve))
  }

  /** Returns what an emulator responds that has drawn the last screen. */
  async #askAboutEnd<Result>(
    screen: Uint8Array,
    request: (emulator: Emulator) => Promise<Result>,
  ): Promise<Result> {
    const emulator = this.#emulators.open(emulatorSize(this.#size))
    try {
      void emulator.write(new Uint8Array(screen))
      return await request(emulator)
    } finally {
      emulator.close()
    }
  }

  /** Draws what is pending at the next pause of the output. */
  #drawSoon(): void {
    clearTimeout(this.#pause)
    this.#pause = setTimeout(() => {
      if (this.#final !== null) return
      this.#due = this.#pending.bytes
      void this.#draw()
    }, PAUSE_MS)
  }

  /** Draws what has to be drawn, in order: what is much, watched or due, and all that is asked about. */
  async #draw(): Promise<void> {
    if (this.#isDrawing) return
    this.#isDrawing = true
    this.#isUnseen = false
    while (!this.#isDisposed) {
      const isWatched = this.#watches.size > 0
      if (this.#takesPlainText && !isWatched) this.#drop()
      if (isWatched || this.#pending.bytes >= MUCH_BYTES) this.#due = this.#pending.bytes
      if (!this.#pending.hasMarks && (this.#due === 0 || this.#pending.bytes === 0)) break
      const emulator = this.#openEmulator()
      this.#isViewed = this.#viewedBytes > 0
      const most = isWatched ? WATCHED_BYTES : DRAW_BYTES
      const next = this.#pending.take(this.#isViewed ? Math.min(most, this.#viewedBytes) : most)
      if (next instanceof Uint8Array) {
        this.#viewedBytes = Math.max(0, this.#viewedBytes - next.length)
        this.#due = Math.min(Math.max(0, this.#due - next.length), this.#pending.bytes)
        const { plain, matches, modes } = (await emulator.write(next)) ?? NOTHING_DRAWN
        this.#takesPlainText = plain
        this.#modes = modes
        for (const { watch, text } of matches) this.#watches.get(watch)?.(text)
      } else await next(emulator)
      if (!this.isFull) this.#listener.drained()
    }
    this.#isDrawing = false
  }

  /** Drops lines that would have left the scrollback when all that is pending is drawn. */
  #drop(): void {
    const before = this.#pending.bytes
    this.#pending.dropPlainLines(this.#rowsKept)
    const dropped = before - this.#pending.bytes
    this.#due = Math.max(0, this.#due - dropped)
    this.#viewedBytes = Math.max(0, this.#viewedBytes - dropped)
    if (dropped > 0 && !this.isFull) this.#listener.drained()
  }

  /** Passes on what the terminal responds to a program, which by now may be another one than has asked. */
  #answer(answer: string): void {
    if (!this.#isViewed && performance.now() - this.#pendingSince < ANSWER_MS) this.#listener.answered(answer)
  }

  /** Returns the emulator. One that was lost is replaced, with an empty screen. */
  #openEmulator(): Emulator {
    if (this.#emulator === null || this.#emulator.isLost)
      this.#emulator = this.#emulators.open(emulatorSize(this.#size), {
        onAnswer: (answer) => this.#answer(answer),
      })
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

/** Returns the size of the emulator of a terminal. Of one with too many rows, or too large for the bound, the first rows are drawn. */
function emulatorSize({ columns, rows }: TerminalSize): EmulatorSize {
  const most = Math.floor(MAX_BYTES / CELL_BYTES / columns)
  const drawn = Math.max(1, Math.min(rows, most, MAX_ROWS))
  return { columns, rows: drawn, scrollback: Math.max(0, Math.min(MAX_SCROLLBACK, most - drawn)) }
}
