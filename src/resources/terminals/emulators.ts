import type { TerminalSize } from '../../compute/execution.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ScreenText } from './emulator-text.ts'

/** A request to the Worker, about the emulator `id`. Each but `open` gets one reply, in order. */
export type EmulatorRequest = { readonly id: number } & (
  | ({ readonly kind: 'open' } & EmulatorSize)
  | { readonly kind: 'write'; readonly data: Uint8Array<ArrayBuffer> }
  | ({ readonly kind: 'resize' } & EmulatorSize)
  | { readonly kind: 'serialize' }
  | { readonly kind: 'read'; readonly lines: number }
  | ({ readonly kind: 'watch'; readonly watch: number } & WatchRequest)
  | { readonly kind: 'unwatch'; readonly watch: number }
  | { readonly kind: 'close' }
)

/** What to look for on a screen. */
export interface WatchRequest {
  /** A regular expression; null to learn the modes only. */
  readonly pattern: string | null
  /** Whether to look only at what changes from now on. */
  readonly onlyNew: boolean
}

/** The results of requests, by kind. */
export interface EmulatorResults {
  /** `plain`: whether plain lines that are followed by enough others would leave no trace. */
  write: { readonly plain: boolean; readonly matches: readonly PatternMatch[] }
  resize: null
  /** What draws the same screen, scrollback included, on an empty terminal. */
  serialize: Uint8Array<ArrayBuffer>
  read: ScreenText
  watch: WatchResult
  unwatch: null
  close: null
}

/** A pattern that was found, by the number of its watch. */
export interface PatternMatch {
  readonly watch: number
  readonly text: string
}

/** The begin of a watch. */
export interface WatchResult {
  readonly modes: InputModes
  /** What matches already; null if nothing does. */
  readonly match: string | null
  /** Why the pattern is refused; null if it is not. */
  readonly refusal: string | null
}

/** The modes of a terminal that change what keys send. */
export interface InputModes {
  /** Cursor keys send the sequences of applications (DECCKM). */
  readonly cursorKeys: boolean
  /** What is pasted is enclosed in marks. */
  readonly paste: boolean
}

/** A reply of the Worker. */
export interface EmulatorReply {
  readonly id: number
  readonly result: EmulatorResults[keyof EmulatorResults]
}

/** What a terminal responds to a program that has asked it something, such as where its cursor is. */
export interface EmulatorAnswer {
  readonly id: number
  readonly answer: string
}

/** The size of an emulator, with the rows above its screen. */
export type EmulatorSize = TerminalSize & { readonly scrollback: number }

/**
 * The emulators of all terminals. They run in one Worker, because drawing takes longer than printing and would hold up
 * everything else. It is loaded with the first emulator and ended with the last.
 */
export class Emulators {
  readonly #logger: Logger
  readonly #open = new Map<number, Emulator>()
  #worker: Worker | null = null
  #lastId = 0

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Makes an emulator with an empty screen. @param onAnswer called with what it responds to a program's questions */
  open(size: EmulatorSize, onAnswer: (answer: string) => void = () => {}): Emulator {
    this.#worker ??= this.#start()
    const worker = this.#worker
    this.#lastId += 1
    const id = this.#lastId
    const emulator = new Emulator(
      (request) =>
        worker.postMessage({ ...request, id }, request.kind === 'write' ? [request.data.buffer] : []),
      { answered: onAnswer, closed: () => this.#close(id) },
    )
    this.#open.set(id, emulator)
    worker.postMessage({ kind: 'open', id, ...size } satisfies EmulatorRequest)
    return emulator
  }

  #close(id: number): void {
    this.#open.delete(id)
    if (this.#open.size > 0) return
    this.#worker?.terminate()
    this.#worker = null
  }

  #start(): Worker {
    const worker = new Worker(workerUrl(import.meta.url), { ref: false })
    worker.addEventListener('message', ({ data }: MessageEvent<EmulatorReply | EmulatorAnswer>) => {
      this.#open.get(data.id)?.receive(data)
    })
    worker.addEventListener('error', ({ message }) => {
      this.#logger.error("the terminals' emulators ended", { error: message })
      if (this.#worker !== worker) return
      this.#worker = null
      const lost = [...this.#open.values()]
      this.#open.clear()
      for (const emulator of lost) emulator.fail()
    })
    return worker
  }
}

type Distributed<T> = T extends unknown ? Omit<T, 'id'> : never

/** One terminal's emulator. */
export class Emulator {
  readonly #post: (request: Distributed<EmulatorRequest>) => void
  readonly #on: { answered: (answer: string) => void; closed: () => void }
  readonly #replies: ((result: EmulatorReply['result']) => void)[] = []
  #isLost = false

  constructor(
    post: (request: Distributed<EmulatorRequest>) => void,
    on: { answered: (answer: string) => void; closed: () => void },
  ) {
    this.#post = post
    this.#on = on
  }

  /** Whether its screen is lost, because the Worker has failed. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Draws bytes, which belong to it from now on. Resolves to null if it is lost, as the other requests do. */
  write(data: Uint8Array<ArrayBuffer>): Promise<EmulatorResults['write'] | null> {
    return this.#request({ kind: 'write', data })
  }

  /** Changes the size. */
  async resize(size: EmulatorSize): Promise<void> {
    await this.#request({ kind: 'resize', ...size })
  }

  /** Returns what draws the same screen on an empty terminal. */
  async serialize(): Promise<Uint8Array> {
    return (await this.#request({ kind: 'serialize' })) ?? new Uint8Array(0)
  }

  /** Returns the screen as text, with the last `lines` rows of scrollback. */
  read(lines: number): Promise<ScreenText | null> {
    return this.#request({ kind: 'read', lines })
  }

  /** Looks for a pattern from now on. `write` reports it by the number of the watch, each time that it is there. */
  watch(watch: number, request: WatchRequest): Promise<WatchResult | null> {
    return this.#request({ kind: 'watch', watch, ...request })
  }

  /** Ends a watch. */
  async unwatch(watch: number): Promise<void> {
    await this.#request({ kind: 'unwatch', watch })
  }

  /** Frees it. */
  close(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#post({ kind: 'close' })
    this.#endReplies()
    this.#on.closed()
  }

  /** Takes a message of the Worker. */
  receive(message: EmulatorReply | EmulatorAnswer): void {
    if ('answer' in message) this.#on.answered(message.answer)
    else this.#replies.shift()?.(message.result)
  }

  /** Notes that the Worker has failed. */
  fail(): void {
    this.#isLost = true
    this.#endReplies()
  }

  #request<Kind extends keyof EmulatorResults>(
    request: Extract<Distributed<EmulatorRequest>, { kind: Kind }>,
  ): Promise<EmulatorResults[Kind] | null> {
    if (this.#isLost) return Promise.resolve(null)
    const { promise, resolve } = Promise.withResolvers<EmulatorResults[Kind] | null>()
    // The Worker replies in order, so it is the result of this request.
    this.#replies.push((result) => resolve(result as EmulatorResults[Kind]))
    this.#post(request)
    return promise
  }

  #endReplies(): void {
    for (const reply of this.#replies.splice(0)) reply(null)
  }
}

/**
 * Returns the file of the Worker. The executable contains it by its path below `src`.
 *
 * @param here `import.meta.url`, which is in Bun's virtual file system for a compiled executable
 */
const workerUrl = (here: string): string =>
  here.includes('/$bunfs/')
    ? './resources/terminals/emulator-worker.ts'
    : new URL('./emulator-worker.ts', here).href
