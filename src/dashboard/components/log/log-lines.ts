import { type Signal, signal } from '@preact/signals'
import type { ResponseOf, StreamEventOf } from '../../../client/client.ts'
import { messageOf } from '../../api/failure.ts'

/** A line of a log, as the API gives it. */
export type LogLine = ResponseOf<'projects.logs'>['logs'][number]

/** The events of a log's stream. */
type LogEvent = StreamEventOf<'projects.logs'>

/** Lines that are kept: more would take memory that no reader has a use for. The oldest go first. */
const MAX_LINES = 100_000

/** Milliseconds within which lines are added together: a program may print thousands a second. */
const BATCH_MS = 50

/** Milliseconds before a stream that has ended is opened again. */
const RETRY_MS = 2_000

/** Opens the stream of a log, with its last lines. */
export type OpenLog = (tail: number, signal: AbortSignal) => AsyncIterable<LogEvent>

/** The lines of a log while it is followed. */
export class LogLines {
  /** The lines that are known, the oldest first. */
  readonly lines: Signal<readonly LogLine[]> = signal([])
  /** Why the log is not followed at present; null while it is. */
  readonly failure: Signal<string | null> = signal(null)
  /** Whether the lines that were there are loaded. */
  readonly isLoaded: Signal<boolean> = signal(false)
  readonly #open: OpenLog
  readonly #waiting: LogLine[] = []
  #following: AbortController | null = null
  #flush: ReturnType<typeof setTimeout> | undefined

  constructor(open: OpenLog) {
    this.#open = open
  }

  /**
   * Follows the log while the page is visible: browsers keep six connections to an instance at most, for all pages.
   *
   * @returns a function that ends it
   */
  follow(): () => void {
    const update = (): void => {
      if (document.hidden) this.#stop()
      else this.#start()
    }
    update()
    document.addEventListener('visibilitychange', update)
    return () => {
      document.removeEventListener('visibilitychange', update)
      this.#stop()
    }
  }

  #stop(): void {
    this.#following?.abort()
    this.#following = null
  }

  #start(): void {
    if (this.#following) return
    const following = new AbortController()
    this.#following = following
    void this.#run(following.signal)
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { event, data } of this.#open(5_000, signal)) {
          if (event === 'line') this.#add(data)
        }
        this.failure.value = null
      } catch (error) {
        if (!signal.aborted) this.failure.value = messageOf(error)
      }
      this.isLoaded.value = true
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  #add(line: LogLine): void {
    this.#waiting.push(line)
    this.#flush ??= setTimeout(() => {
      this.#flush = undefined
      const lines = this.lines.peek()
      const last = lines.at(-1)?.seq ?? 0
      const added = this.#waiting.splice(0).filter(({ seq }) => seq > last)
      this.isLoaded.value = true
      this.failure.value = null
      if (added.length > 0) this.lines.value = [...lines, ...added].slice(-MAX_LINES)
    }, BATCH_MS)
  }
}
