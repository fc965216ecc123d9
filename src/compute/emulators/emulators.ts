/** The screens of terminals: an emulator draws what a program prints. All run in one Worker. */
import type { Logger } from '../../runtime/logger.ts'
import type {
  EmulatorMessage,
  EmulatorRequest,
  EmulatorResults,
  EmulatorSize,
  WatchRequest,
  WatchResult,
} from './protocol.ts'
import type { ScreenRows } from './rows.ts'
import type { ScreenText } from './text.ts'

export type { EmulatorSize, InputModes, WatchRequest, WriteResult } from './protocol.ts'
export type { RowEvent } from './rows.ts'
export type { ScreenText } from './text.ts'

/** The options of an emulator. */
interface OpenOptions {
  /** Called with what it responds to a program's questions. */
  onAnswer?: (answer: string) => void
  /** Whether `write` reports what happens to the rows. */
  followsRows?: boolean
}

/**
 * The emulators of all terminals, and of agents that are command-line programs. They run in one Worker, because drawing
 * takes longer than printing and would hold up everything else. There they take turns, so that none holds up another, and
 * an error costs its own screen at most. The Worker is loaded with the first emulator and ended with the last.
 */
export class Emulators {
  readonly #logger: Logger
  readonly #open = new Map<number, Emulator>()
  #worker: Worker | null = null
  #lastId = 0

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Makes an emulator with an empty screen. */
  open(size: EmulatorSize, { onAnswer = () => {}, followsRows = false }: OpenOptions = {}): Emulator {
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
    worker.postMessage({ kind: 'open', id, size, followsRows } satisfies EmulatorRequest)
    return emulator
  }

  #close(id: number): void {
    this.#open.delete(id)
    if (this.#open.size > 0) return
    this.#worker?.terminate()
    this.#worker = null
  }

  /** Logs the first fault of each emulator: a program may bring about any number. */
  #logFault({ id, fault }: Extract<EmulatorMessage, { fault: string }>): void {
    const isFirst = id === null || this.#open.get(id)?.noteFault()
    if (!isFirst) return
    this.#logger.warn('a terminal emulator failed, and its screen was drawn anew', { error: fault })
  }

  #start(): Worker {
    const worker = new Worker(workerUrl(import.meta.url), { ref: false })
    worker.addEventListener('message', ({ data }: MessageEvent<EmulatorMessage>) => {
      if ('fault' in data) this.#logFault(data)
      else this.#open.get(data.id)?.receive(data)
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

/** Receives the result of a request; null if the emulator could not do it. */
type Reply = (result: EmulatorResults[keyof EmulatorResults]) => void

type Distributed<T> = T extends unknown ? Omit<T, 'id'> : never

/** One terminal's emulator. */
export class Emulator {
  readonly #post: (request: Distributed<EmulatorRequest>) => void
  readonly #on: { answered: (answer: string) => void; closed: () => void }
  readonly #replies: Reply[] = []
  /** The same for peeks, which are replied to at once. */
  readonly #peeks: Reply[] = []
  #isLost = false
  #hasFailed = false

  constructor(
    post: (request: Distributed<EmulatorRequest>) => void,
    on: { answered: (answer: string) => void; closed: () => void },
  ) {
    this.#post = post
    this.#on = on
  }

  /** Whether its screen is lost, because the Worker has ended. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Draws bytes, which belong to it from now on. Resolves to null if it is lost, as the other requests do. */
  write(data: Uint8Array<ArrayBuffer>): Promise<EmulatorResults['write'] | null> {
    return this.#request({ kind: 'write', data })
  }

  /** Changes the size. */
  async resize(size: EmulatorSize): Promise<void> {
    await this.#request({ kind: 'resize', size })
  }

  /** Returns what draws the same screen on an empty terminal. */
  async serialize(): Promise<Uint8Array> {
    return (await this.#request({ kind: 'serialize' })) ?? new Uint8Array(0)
  }

  /** Returns the screen as text, with the last `lines` rows of scrollback. */
  read(lines: number): Promise<ScreenText | null> {
    return this.#request({ kind: 'read', lines })
  }

  /** Returns the screen as it is now, even if earlier requests are not done yet. */
  peek(lines: number): Promise<ScreenText | null> {
    return this.#request({ kind: 'peek', lines }, this.#peeks)
  }

  /** Returns the rows of the screen. */
  rows(): Promise<ScreenRows | null> {
    return this.#request({ kind: 'rows' })
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
  receive(message: Exclude<EmulatorMessage, { fault: string }>): void {
    if ('answer' in message) this.#on.answered(message.answer)
    else (message.kind === 'peek' ? this.#peeks : this.#replies).shift()?.(message.result)
  }

  /** Notes that it has failed, and was replaced in the Worker. @returns whether it is the first time */
  noteFault(): boolean {
    const isFirst = !this.#hasFailed
    this.#hasFailed = true
    return isFirst
  }

  /** Notes that the Worker has ended. */
  fail(): void {
    this.#isLost = true
    this.#endReplies()
  }

  #request<Kind extends keyof EmulatorResults>(
    request: Extract<Distributed<EmulatorRequest>, { kind: Kind }>,
    replies = this.#replies,
  ): Promise<EmulatorResults[Kind] | null> {
    if (this.#isLost) return Promise.resolve(null)
    const { promise, resolve } = Promise.withResolvers<EmulatorResults[Kind] | null>()
    // The Worker replies in order, so it is the result of this request.
    replies.push((result) => resolve(result as EmulatorResults[Kind]))
    this.#post(request)
    return promise
  }

  #endReplies(): void {
    for (const reply of [...this.#replies.splice(0), ...this.#peeks.splice(0)]) reply(null)
  }
}

/**
 * Returns the file of the Worker. The executable contains it by its path below `src`.
 *
 * @param here `import.meta.url`, which is in Bun's virtual file system for a compiled executable
 */
const workerUrl = (here: string): string =>
  here.includes('/$bunfs/') ? './compute/emulators/worker.ts' : new URL('./worker.ts', here).href
