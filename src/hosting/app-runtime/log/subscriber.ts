import { onAbort } from '../../../runtime/abort.ts'
import type { LogEntry } from './entry.ts'

/** Largest number of entries queued for a slow reader. Newer entries displace the oldest. @bound client */
const MAX_QUEUED = 1000

/** An event of a log's subscription. */
export type LogEvent =
  | { readonly kind: 'entry'; readonly entry: LogEntry }
  /** Number of entries omitted because the subscriber was too slow. */
  | { readonly kind: 'dropped'; readonly entries: number }

/** Receives events. The next one waits until a returned promise resolves. */
export type SendLog = (event: LogEvent) => void | Promise<void>

/** A subscriber of a log. Writers do not wait for it. */
export class LogSubscriber {
  #waiting: LogEntry[] = []
  #dropped = 0
  #wake: (() => void) | null = null
  readonly #worker: string | undefined

  /** @param worker whose lines alone are sent; undefined for all lines */
  constructor(worker?: string) {
    this.#worker = worker
  }

  /** Queues a logged line, if it is one of those that are sent. */
  push(entry: LogEntry): void {
    if (this.#worker !== undefined && entry.worker !== this.#worker) return
    this.#waiting.push(entry)
    if (this.#waiting.length > MAX_QUEUED) {
      this.#waiting.shift()
      this.#dropped += 1
    }
    this.#wake?.()
  }

  /** Sends `first` and then each new entry, until the signal aborts. */
  async run(signal: AbortSignal, first: readonly LogEntry[], send: SendLog): Promise<void> {
    using _abort = onAbort(signal, () => this.#wake?.())
    for (const entry of first) {
      if (signal.aborted) return
      await send({ kind: 'entry', entry })
    }
    const last = first.at(-1)?.seq ?? 0
    while (!signal.aborted) await this.#sendWaiting(signal, last, send)
  }

  async #sendWaiting(signal: AbortSignal, after: number, send: SendLog): Promise<void> {
    const entries = this.#waiting
    this.#waiting = []
    if (this.#dropped > 0) {
      const dropped = this.#dropped
      this.#dropped = 0
      await send({ kind: 'dropped', entries: dropped })
    }
    for (const entry of entries) {
      if (signal.aborted) return
      if (entry.seq > after) await send({ kind: 'entry', entry })
    }
    if (this.#waiting.length > 0 || signal.aborted) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    this.#wake = null
  }
}
