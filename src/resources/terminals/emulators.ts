import type { TerminalSize } from '../../compute/driver.ts'
import type { Logger } from '../../runtime/logger.ts'

/** A request to the Worker, about the emulator `id`. Each but `open` gets one reply, in order. */
export type EmulatorRequest = { readonly id: number } & (
  | ({ readonly kind: 'open' } & EmulatorSize)
  | { readonly kind: 'write'; readonly data: Uint8Array<ArrayBuffer> }
  | ({ readonly kind: 'resize' } & EmulatorSize)
  | { readonly kind: 'serialize' }
  | { readonly kind: 'close' }
)

/** A reply of the Worker. */
export interface EmulatorReply {
  readonly id: number
  /** After `write`: whether plain lines that are followed by enough others would leave no trace. */
  plain: boolean
  /** After `serialize`: what draws the same screen, scrollback included, on an empty terminal. */
  screen: Uint8Array<ArrayBuffer> | null
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

  /** Makes an emulator with an empty screen. */
  open(size: EmulatorSize): Emulator {
    this.#worker ??= this.#start()
    const worker = this.#worker
    this.#lastId += 1
    const id = this.#lastId
    const emulator = new Emulator(
      (request) =>
        worker.postMessage({ ...request, id }, request.kind === 'write' ? [request.data.buffer] : []),
      () => this.#close(id),
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
    worker.addEventListener('message', ({ data }: MessageEvent<EmulatorReply>) => {
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
  readonly #onClose: () => void
  readonly #replies: PromiseWithResolvers<EmulatorReply>[] = []
  #isLost = false

  constructor(post: (request: Distributed<EmulatorRequest>) => void, onClose: () => void) {
    this.#post = post
    this.#onClose = onClose
  }

  /** Whether its screen is lost, because the Worker has failed. */
  get isLost(): boolean {
    return this.#isLost
  }

  /**
   * Draws bytes, which belong to it from now on.
   *
   * @returns whether plain lines that are followed by enough others would leave no trace
   */
  async write(data: Uint8Array<ArrayBuffer>): Promise<boolean> {
    return (await this.#request({ kind: 'write', data })).plain
  }

  /** Changes the size. */
  async resize(size: EmulatorSize): Promise<void> {
    await this.#request({ kind: 'resize', ...size })
  }

  /** Returns what draws the same screen on an empty terminal. */
  async serialize(): Promise<Uint8Array> {
    return (await this.#request({ kind: 'serialize' })).screen ?? new Uint8Array(0)
  }

  /** Frees it. */
  close(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#post({ kind: 'close' })
    this.#endReplies()
    this.#onClose()
  }

  /** Takes a reply of the Worker. */
  receive(reply: EmulatorReply): void {
    this.#replies.shift()?.resolve(reply)
  }

  /** The Worker has failed. */
  fail(): void {
    this.#isLost = true
    this.#endReplies()
  }

  #request(request: Distributed<EmulatorRequest>): Promise<EmulatorReply> {
    const reply = Promise.withResolvers<EmulatorReply>()
    if (this.#isLost) return Promise.resolve(NO_REPLY)
    this.#replies.push(reply)
    this.#post(request)
    return reply.promise
  }

  #endReplies(): void {
    for (const reply of this.#replies.splice(0)) reply.resolve(NO_REPLY)
  }
}

/** The reply of an emulator that is lost. */
const NO_REPLY: EmulatorReply = { id: 0, plain: false, screen: null }

/**
 * Returns the file of the Worker. The executable contains it by its path below `src`.
 *
 * @param here `import.meta.url`, which is in Bun's virtual file system for a compiled executable
 */
const workerUrl = (here: string): string =>
  here.includes('/$bunfs/')
    ? './resources/terminals/emulator-worker.ts'
    : new URL('./emulator-worker.ts', here).href
