import { SerializeAddon } from '@xterm/addon-serialize'
import type { Terminal } from '@xterm/headless'
import type { BoundedEmulator } from '../../runtime/bounded-emulator.ts'
import { openEmulator } from '../../runtime/emulator.ts'
import { coreOf } from '../../runtime/emulator-core.ts'
import type {
  EmulatorRequest,
  EmulatorResults,
  EmulatorSize,
  InputModes,
  PatternMatch,
  WatchResult,
  WriteResult,
} from './protocol.ts'
import { LeavingRows, readRows } from './rows.ts'
import { stateSequences, takesPlainText } from './state.ts'
import { readScreen } from './text.ts'
import type { PatternWatch } from './watch.ts'

/** Fewest columns to which lines are wrapped anew, and most from which they are. */
const NARROW = 10
const WIDE = 500

/** Most bytes of a screen with its scrollback, as the sequences that draw it. @bound program */
const MAX_SERIALIZED = 4 * 1024 * 1024

/** Most characters of responses that wait to be passed on. A program may ask without end. @bound program */
const MAX_ANSWERS = 16 * 1024

/** How often a request is tried on a screen that was made anew: from what is kept, then empty. */
const ATTEMPTS = 3

/** CAN ends the sequence that is under way, and shows nothing (ECMA-48, section 8.3.6). */
const CANCEL = Uint8Array.of(0x18)

/** What an emulator reports by itself. */
interface EmulatorEvents {
  /** Called with what it responds to a program's questions. */
  answered(answer: string): void
  /** Called when the emulator has failed. The screen is made anew. */
  failed(error: unknown): void
}

type Result = EmulatorResults[keyof EmulatorResults]

/**
 * An emulator in the Worker. It does one thing at a time, in the order of the requests. If the emulator fails, it is
 * replaced by another one that draws the end of the output anew, without the bytes at which it has failed.
 */
export class HostedEmulator {
  readonly #events: EmulatorEvents
  readonly #followsRows: boolean
  readonly #kept = new ReplayedOutput()
  /** By number. */
  readonly #watches = new Map<number, PatternWatch>()
  #size: EmulatorSize
  #drawn: { bounded: BoundedEmulator; serializer: SerializeAddon } | null = null
  #rows: LeavingRows | null = null
  #title = ''
  #answers = ''
  readonly #opened: Promise<void>
  #last: Promise<unknown>
  #isClosed = false

  constructor(size: EmulatorSize, followsRows: boolean, events: EmulatorEvents) {
    this.#size = size
    this.#followsRows = followsRows
    this.#events = events
    this.#opened = this.#open().then(() => this.#followRows())
    this.#last = this.#opened
  }

  /**
   * Does what a request asks for, after all earlier ones; a peek at once.
   *
   * @param reply called with the result; null if the emulator cannot do it
   */
  handle(request: EmulatorRequest, reply: (result: Result) => void): void {
    if (request.kind === 'peek') void this.#opened.then(async () => reply(await this.#attempt(request)))
    else this.#last = this.#last.then(async () => reply(await this.#attempt(request)))
    if (request.kind !== 'close') return
    this.#isClosed = true
    this.#drawn?.bounded.stop()
  }

  /** Opens an empty emulator in place of the one before. */
  async #open(): Promise<void> {
    const bounded = await openEmulator(this.#size)
    const { terminal } = bounded
    const serializer = new SerializeAddon()
    terminal.loadAddon(serializer)
    terminal.onTitleChange((title) => {
      this.#title = title
    })
    this.#drawn = { bounded, serializer }
  }

  /** Reports from now on what the program asks, and the rows that leave. What is drawn anew is not reported again. */
  #followRows(): void {
    const { terminal } = this.#bounded
    terminal.onData((answer) => this.#answer(answer))
    if (this.#followsRows) this.#rows = new LeavingRows(terminal, this.#rows?.take() ?? [])
  }

  get #bounded(): BoundedEmulator {
    if (this.#drawn === null) throw new Error('The emulator is not open.')
    return this.#drawn.bounded
  }

  /** Does what a request asks for. If the emulator fails, its screen is made anew, and the request tried again. */
  async #attempt(request: EmulatorRequest): Promise<Result> {
    for (let attempt = 1; !this.#isClosed; attempt += 1) {
      try {
        return await this.#do(request)
      } catch (error) {
        if (request.kind === 'peek' || attempt === ATTEMPTS) return null
        if (attempt > 1) this.#kept.take()
        await this.#makeAnew(error)
        // What was to be written is drawn.
        if (request.kind === 'write') return { ...this.#written([]), plain: false }
      }
    }
    return null
  }

  async #do(request: EmulatorRequest): Promise<Result> {
    switch (request.kind) {
      case 'write':
        await this.#write(request.data)
        this.#passAnswersOn()
        return this.#written(this.#matches())
      case 'serialize':
        return this.#serialize()
      case 'read':
      case 'peek':
        return readScreen(this.#bounded.terminal, this.#title, request.lines)
      case 'rows':
        return readRows(this.#bounded.terminal)
      case 'watch':
        return this.#watch(request)
      case 'unwatch':
        this.#watches.get(request.watch)?.dispose()
        this.#watches.delete(request.watch)
        return null
      case 'resize':
        this.#resize(request.size)
        return null
      case 'open':
      case 'close':
        return null
    }
  }

  /** Draws output, without the bytes at which the emulator fails. */
  async #write(data: Uint8Array): Promise<void> {
    let rest = data
    let single = 0
    for (;;) {
      const fault = await this.#bounded.draw(rest, single)
      this.#kept.add(fault === null ? rest : rest.subarray(0, fault.from))
      if (fault === null) return
      await this.#makeAnew(fault.error)
      const { from, to } = fault
      if (to - from > 1) {
        // Once more, to find the byte.
        rest = rest.subarray(from)
        single = to - from
      } else {
        rest = rest.subarray(to)
        single = Math.max(0, single - to)
        await this.#bounded.draw(CANCEL)
        this.#kept.add(CANCEL)
      }
    }
  }

  /** Replaces the emulator, which has failed, by another one that draws what is kept of the output. */
  async #makeAnew(error: unknown): Promise<void> {
    this.#events.failed(error)
    let rest = this.#kept.take()
    for (;;) {
      await this.#open()
      const fault = await this.#bounded.draw(rest)
      if (fault === null) break
      // Without what precedes it, so that it ends.
      rest = rest.subarray(fault.to)
    }
    this.#kept.add(rest)
    this.#followRows()
    for (const watch of this.#watches.values()) watch.laidOut(this.#bounded.terminal)
  }

  #resize(size: EmulatorSize): void {
    this.#size = size
    const { terminal } = this.#bounded
    terminal.options.scrollback = size.scrollback
    // Wrapping anew looks at each cell of a line with several characters once for each line that it becomes: 13 s from
    // 10,000 columns to 20. Beyond these bounds lines are cut, as on consoles of Windows.
    const isCut = size.columns < NARROW || terminal.cols > WIDE
    if (isCut) resizeCutting(terminal, size)
    else terminal.resize(size.columns, size.rows)
    for (const watch of this.#watches.values()) watch.laidOut(terminal)
  }

  #written(matches: readonly PatternMatch[]): WriteResult {
    return {
      plain: takesPlainText(this.#bounded),
      matches,
      rowEvents: this.#rows?.take() ?? [],
      modes: modesOf(this.#bounded.terminal),
    }
  }

  /** Returns what draws the screen, with as many rows of its scrollback as fit. */
  #serialize(): Uint8Array<ArrayBuffer> {
    const { serializer, bounded } = this.#drawn ?? {}
    if (serializer === undefined || bounded === undefined) return new Uint8Array(0)
    const state = stateSequences(bounded.terminal, this.#title)
    let scrollback = bounded.terminal.buffer.normal.baseY
    for (;;) {
      const screen = new TextEncoder().encode(`${serializer.serialize({ scrollback })}${state}`)
      if (screen.length <= MAX_SERIALIZED || scrollback === 0) return screen
      scrollback = Math.floor((scrollback * MAX_SERIALIZED) / screen.length / 2)
    }
  }

  /** Looks for a pattern on a terminal from now on. Without one it only returns the modes that input depends on. */
  async #watch({
    watch: number,
    pattern,
    onlyNew,
  }: Extract<EmulatorRequest, { kind: 'watch' }>): Promise<WatchResult> {
    const modes = modesOf(this.#bounded.terminal)
    if (pattern === null) return { modes, match: null, refusal: null }
    // The engine of expressions is loaded with the first one.
    const { PatternWatch } = await import('./watch.ts')
    const watch = PatternWatch.begin(this.#bounded.terminal, pattern, onlyNew)
    if (typeof watch === 'string') return { modes, match: null, refusal: watch }
    this.#watches.set(number, watch)
    return { modes, match: watch.find(), refusal: null }
  }

  #matches(): PatternMatch[] {
    return [...this.#watches].flatMap(([watch, pattern]) => {
      const text = pattern.find()
      return text === null ? [] : [{ watch, text }]
    })
  }

  /** Passes on a response in the next turn, or when the output is drawn, with those that follow it until then. */
  #answer(answer: string): void {
    if (this.#answers === '') setTimeout(() => this.#passAnswersOn())
    if (this.#answers.length + answer.length <= MAX_ANSWERS) this.#answers += answer
  }

  #passAnswersOn(): void {
    const answers = this.#answers
    this.#answers = ''
    if (answers !== '') this.#events.answered(answers)
  }
}

/** Changes the size of a terminal, and cuts its lines at the right edge. */
function resizeCutting(terminal: Terminal, { columns, rows }: EmulatorSize): void {
  terminal.options.windowsPty = { backend: 'conpty', buildNumber: 1 }
  terminal.resize(columns, rows)
  terminal.options.windowsPty = {}
  const { normal, alt } = coreOf(terminal).buffers
  // The emulator itself leaves what is right of the edge where it is.
  for (const buffer of [normal, alt]) {
    for (let row = 0; row < buffer.lines.length; row += 1) {
      const line = buffer.lines.get(row)
      if (line === undefined) continue
      // An emulator has at least two columns.
      line.resize(terminal.cols, buffer.getNullCell())
      // What it continued has lost its end.
      line.isWrapped = false
    }
  }
}

function modesOf({ modes }: Terminal): InputModes {
  const { applicationCursorKeysMode: cursorKeys, bracketedPasteMode: paste } = modes
  return { cursorKeys, paste }
}

/**
 * Most bytes that are kept, and a multiple of that which is allocated so that bytes are seldom moved.
 * @bound program
 */
const MOST_BYTES = 128 * 1024
const ALLOCATED = 2 * MOST_BYTES

const LINE_FEED = 10

/** The end of a program's output, from which its screen can be drawn anew. */
class ReplayedOutput {
  #buffer = new Uint8Array(1024)
  #length = 0
  /** Whether earlier output is not there any more. */
  #isCut = false

  /** Adds output. */
  add(data: Uint8Array): void {
    const added = data.subarray(Math.max(0, data.length - MOST_BYTES))
    this.#isCut ||= added.length < data.length
    if (this.#length + added.length > this.#buffer.length) this.#makeRoom(added.length)
    this.#buffer.set(added, this.#length)
    this.#length += added.length
  }

  /** Returns what is kept, from the beginning of a line on if earlier output is missing, and keeps nothing any more. */
  take(): Uint8Array {
    const kept = this.#buffer.slice(0, this.#length)
    const begin = this.#isCut ? kept.indexOf(LINE_FEED) + 1 : 0
    this.#length = 0
    return kept.subarray(begin)
  }

  #makeRoom(bytes: number): void {
    const size = Math.min(ALLOCATED, Math.max(2 * this.#buffer.length, this.#length + bytes))
    const kept = this.#length + bytes <= size ? this.#length : Math.min(this.#length, MOST_BYTES)
    const buffer = size > this.#buffer.length ? new Uint8Array(size) : this.#buffer
    this.#isCut ||= kept < this.#length
    buffer.set(this.#buffer.subarray(this.#length - kept, this.#length))
    this.#buffer = buffer
    this.#length = kept
  }
}
