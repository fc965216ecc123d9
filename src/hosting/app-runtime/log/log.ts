import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, toIso } from '../../../runtime/clock.ts'
import { isGone } from '../../../runtime/if-present.ts'
import { cleanLine, LineStream } from '../../../runtime/lines.ts'
import type { Logger } from '../../../runtime/logger.ts'
import type { Masks } from '../../../runtime/masks.ts'
import type { RecordedLine } from '../../../runtime/recorder.ts'
import { onAbort } from '../../../runtime/wait.ts'
import { AppLogFile, type LogEntry, type LogSelection, type LogSource } from './log-file.ts'

/** Limits in bytes of a file of the app's output, and of one of a bring-up. There are at most two of each. */
const APP_BYTES = 4 * 2 ** 20
const RUN_BYTES = 2 ** 20

/** Number of bring-ups whose log is kept. */
const RUNS_KEPT = 5

/** Milliseconds for which lines are collected before they are written. */
const FLUSH_MS = 10

/** Bytes in the queue above which writers wait. */
const HIGH_WATER = 256 * 1024

/** Largest number of entries returned at once. @bound client */
const MAX_ENTRIES = 10_000

/** Matches a bring-up's file name, which has the number of its first entry and the bring-up's id. */
const RUN_FILE = /^run-(\d+)-(.+)\.jsonl$/

/** The options of an `AppLog`. */
interface AppLogOptions {
  /** Absolute path of the log's directory, created at the first write. */
  dir: string
  clock: Clock
  masks: Masks
  logger: Logger
  /** Takes each line that is logged. */
  record?: ((line: RecordedLine) => void) | undefined
}

/** The log of one app on disk: its bring-ups and its output, limited in size, without secrets. */
export class AppLog {
  readonly #options: AppLogOptions
  readonly #app: AppLogFile
  readonly #runs: Array<{ seq: number; id: string; file: AppLogFile }>
  readonly #subscribers = new Set<LogSubscriber>()
  #run: AppLogFile | null = null
  #seq: number
  #pending = new Map<AppLogFile, string[]>()
  #pendingBytes = 0
  #flushing: Promise<void> | null = null
  #queue: Promise<void> = Promise.resolve()
  #failed = false
  #sealed = false
  #closed = false
  readonly #closing = new AbortController()

  /** Opens the log in a directory with its existing entries; there may be none yet. Throws the system's error. */
  static async open(options: AppLogOptions): Promise<AppLog> {
    const names = await readdir(options.dir).catch((error: unknown) => {
      if (isGone(error)) return []
      throw error
    })
    const runs = names
      .flatMap((name) => {
        const [, seq, id] = RUN_FILE.exec(name) ?? []
        return seq === undefined || id === undefined ? [] : [{ seq: Number(seq), id }]
      })
      .sort((a, b) => a.seq - b.seq)
      .map(({ seq, id }) => ({ seq, id, file: runFile(options.dir, seq, id) }))
    const app = new AppLogFile(join(options.dir, 'app.jsonl'), APP_BYTES)
    const last = await Promise.all([app, ...runs.map(({ file }) => file)].map((one) => one.tail(1)))
    const seq = Math.max(0, ...last.map(([entry]) => entry?.seq ?? 0), ...runs.map((run) => run.seq))
    return new AppLog(options, app, runs, seq)
  }

  private constructor(
    options: AppLogOptions,
    app: AppLogFile,
    runs: Array<{ seq: number; id: string; file: AppLogFile }>,
    seq: number,
  ) {
    this.#options = options
    this.#app = app
    this.#runs = runs
    this.#seq = seq
  }

  /** The secrets hidden in this log. */
  get masks(): Masks {
    return this.#options.masks
  }

  /**
   * Assigns subsequent lines, except the output of the app and its workers, to this bring-up until `endRun` or the next call. Removes
   * the oldest of more than 5. An interrupted bring-up is continued by its id.
   *
   * @param id letters, digits, `_` and `-`
   */
  beginRun(id: string): void {
    const known = this.#runs.find((run) => run.id === id)
    if (known !== undefined) {
      this.#run = known.file
      return
    }
    const seq = this.#seq + 1
    const file = runFile(this.#options.dir, seq, id)
    this.#runs.push({ seq, id, file })
    this.#run = file
    const old = this.#runs.splice(0, Math.max(0, this.#runs.length - RUNS_KEPT))
    this.#enqueue(async () => {
      for (const run of old) await run.file.remove()
    })
  }

  /** Ends the bring-up. */
  endRun(): void {
    this.#run = null
  }

  /** Logs complete lines, such as berth's own messages. */
  append(source: LogSource, text: string): void {
    for (const line of text.replace(/\n$/, '').split('\n')) {
      this.#add({ source, text: this.masks.mask(cleanLine(line)) })
    }
  }

  /** Logs that the bring-up has come to a phase. */
  appendPhase(phase: string, run: string): void {
    this.#add({ source: 'berth', phase, run, text: `→ ${phase}` })
  }

  /**
   * Returns a sink for the output of one process.
   *
   * @param onLine called after each line
   * @param isShown returns whether a line is logged
   * @param worker name of the worker that the process is, with the source `worker`
   */
  output(
    source: LogSource,
    onLine?: (text: string) => void,
    isShown?: (text: string) => boolean,
    worker?: string,
  ): LogOutput {
    const origin = { source, ...(worker === undefined ? {} : { worker }) }
    const add = (line: { stream?: 'stdout' | 'stderr'; text: string }): void | Promise<void> => {
      const added = this.#add({ ...origin, ...line })
      onLine?.(line.text)
      return added
    }
    return new LogOutput(this.masks, add, isShown)
  }

  /** Returns the last `n` entries, oldest first; only those of one bring-up if its id is given. */
  async tail(n: number, run?: string): Promise<LogEntry[]> {
    const all = [this.#app, ...this.#runs.map(({ file }) => file)]
    return this.#lastOf(
      run === undefined ? all : this.#runs.filter(({ id }) => id === run).map(({ file }) => file),
      n,
    )
  }

  /** Returns the last `n` entries that a worker has printed, oldest first. */
  #workerTail(n: number, worker: string): Promise<LogEntry[]> {
    return this.#lastOf([this.#app], n, worker)
  }

  async #lastOf(files: readonly AppLogFile[], n: number, worker?: string): Promise<LogEntry[]> {
    await this.flush()
    const most = Math.min(n, MAX_ENTRIES)
    const found = (await Promise.all(files.map((file) => file.tail(most, worker)))).flat()
    return found.sort((a, b) => a.seq - b.seq).slice(Math.max(0, found.length - most))
  }

  /** Returns the selected entries, oldest first. */
  async select({ tail, since = null, after = 0, worker }: LogSelection): Promise<LogEntry[]> {
    const last = (n: number) => (worker === undefined ? this.tail(n) : this.#workerTail(n, worker))
    if (since === null && after === 0) return last(tail)
    // Texts of times compare as the times do.
    const from = since === null ? '' : toIso(since)
    const all = await last(MAX_ENTRIES)
    const selected = all.filter(({ at, seq }) => at >= from && seq > after)
    return selected.slice(Math.max(0, selected.length - tail))
  }

  /**
   * Sends the selected entries and then each new one, until the signal aborts or the log is closed. A slow reader
   * loses entries and receives their number; nothing waits for it.
   */
  async subscribe(signal: AbortSignal, selection: LogSelection, send: SendLog): Promise<void> {
    const subscriber = new LogSubscriber(selection.worker)
    const over = AbortSignal.any([signal, this.#closing.signal])
    this.#subscribers.add(subscriber)
    try {
      await subscriber.run(over, await this.select(selection), send)
    } finally {
      this.#subscribers.delete(subscriber)
    }
  }

  /** Resolves when all lines logged before are on disk. */
  async flush(): Promise<void> {
    while (this.#pendingBytes > 0 && !this.#closed) await this.#write()
    await this.#queue
  }

  /** Accepts no further lines. Earlier ones are still written and can be read. */
  seal(): void {
    this.#sealed = true
  }

  /** Writes the remaining lines, ends subscriptions and accepts no further lines. */
  async close(): Promise<void> {
    await this.flush()
    this.#closed = true
    this.#closing.abort()
  }

  /** Closes the log and removes it from the disk. */
  async remove(): Promise<void> {
    this.#closed = true
    this.#closing.abort()
    this.#pending.clear()
    await this.#queue
    await rm(this.#options.dir, { recursive: true, force: true })
  }

  #add(line: Omit<LogEntry, 'seq' | 'at'>): void | Promise<void> {
    if (this.#closed || this.#sealed) return
    this.#seq += 1
    const entry: LogEntry = { seq: this.#seq, at: toIso(this.#options.clock.now()), ...line }
    const isOutput = line.source === 'app' || line.source === 'worker'
    const file = isOutput ? this.#app : (this.#run ?? this.#app)
    const text = `${JSON.stringify(entry)}\n`
    const lines = this.#pending.get(file)
    if (lines === undefined) this.#pending.set(file, [text])
    else lines.push(text)
    this.#pendingBytes += text.length
    for (const subscriber of this.#subscribers) subscriber.push(entry)
    this.#options.record?.(entry)
    this.#flushing ??= this.#flushSoon()
    if (this.#pendingBytes > HIGH_WATER) return this.#flushing
  }

  async #flushSoon(): Promise<void> {
    await Bun.sleep(FLUSH_MS)
    this.#flushing = null
    await this.#write()
  }

  #write(): Promise<void> {
    return this.#enqueue(async () => {
      const pending = this.#pending
      this.#pending = new Map()
      this.#pendingBytes = 0
      for (const [file, lines] of pending) await file.append(lines.join(''))
    })
  }

  /** Runs writes one after the other. A failed write (a full disk) loses its lines and is logged once. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(work).then(
      () => {
        this.#failed = false
      },
      (error: unknown) => {
        if (!this.#failed) this.#options.logger.warn('an app’s log cannot be written', { error })
        this.#failed = true
      },
    )
    return this.#queue
  }
}

/** Returns a bring-up's file. The names of these files sort by age. */
function runFile(dir: string, seq: number, id: string): AppLogFile {
  return new AppLogFile(join(dir, `run-${String(seq).padStart(12, '0')}-${id}.jsonl`), RUN_BYTES)
}

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

/** Number of last lines kept in memory, to explain why a process ended. */
const LINES_KEPT = 50

/** A line of a process's output, or berth's note about it. */
interface OutputLine {
  stream?: 'stdout' | 'stderr'
  text: string
}

/** Passes one process's output to a log. */
export class LogOutput {
  readonly #streams: Readonly<Record<'stdout' | 'stderr', LineStream>>
  #last: string[] = []
  #wait: void | Promise<void> = undefined

  /**
   * @param add logs a line; the process waits while its promise is pending
   * @param isShown returns whether a line of the process is logged
   */
  constructor(
    masks: Masks,
    add: (line: OutputLine) => void | Promise<void>,
    isShown: (text: string) => boolean = () => true,
  ) {
    const stream = (name: 'stdout' | 'stderr'): LineStream =>
      new LineStream({
        masks,
        onLine: (text) => {
          if (isShown(text)) this.#keep(text, add({ stream: name, text }))
        },
        onNote: (text) => this.#keep(text, add({ text })),
      })
    this.#streams = { stdout: stream('stdout'), stderr: stream('stderr') }
  }

  /** Accepts output. The process should wait while a returned promise is pending. */
  write(stream: 'stdout' | 'stderr', bytes: Uint8Array): void | Promise<void> {
    this.#wait = undefined
    const slow = this.#streams[stream].write(bytes)
    const full = this.#wait as void | Promise<void>
    if (slow === undefined) return full
    return full === undefined ? slow : Promise.all([slow, full]).then(() => {})
  }

  /** Logs the unfinished lines of a process that has ended. */
  end(): void {
    this.#streams.stdout.end()
    this.#streams.stderr.end()
  }

  /** The last lines of output, secrets masked. */
  get last(): readonly string[] {
    return this.#last
  }

  #keep(text: string, wait: void | Promise<void>): void {
    this.#last.push(text)
    if (this.#last.length > LINES_KEPT) this.#last.shift()
    if (wait !== undefined) this.#wait = wait
  }
}
