/** A line of the log of an app or a build, without secrets. */
export interface RecordedLine {
  /** ISO 8601, by berth's clock. */
  readonly at: string
  /** What printed it, such as `install` or `app`. */
  readonly source: string
  /** Name of the worker that printed it. */
  readonly worker?: string
  readonly text: string
}

/**
 * Receives what services store or notice at the moment when they do, also what is removed soon after. Its methods only take
 * a note: they are called inside transactions.
 */
export interface Recorder {
  /** Takes a response that the journal leaves out: the credentials in it are hidden everywhere. */
  response(response: Response): void
  /** Takes an event of a task's transcript. */
  transcript(taskId: string, event: object): void
  /**
   * Takes a line of a log.
   *
   * @param log id of the project, of the server that publishes the app, or of the build
   */
  logLine(log: string, line: RecordedLine): void
  /**
   * Takes what a command or a terminal has printed, when it has ended.
   *
   * @param id of the execution or the terminal, or of the request whose response was the output
   */
  output(id: string, printed: PrintedEnds): void
  /** Takes the query of a wait whose time was over before anything that it waited for. */
  expiredWait(query: object): void
}

/** Bytes that are kept of what a command prints: so many from its beginning, and so many from its end. @bound program */
const KEPT_BYTES = 64 * 1024

/** The first and the last lines of what is printed. */
export class PrintedEnds {
  readonly #first: Uint8Array[] = []
  #last: Uint8Array[] = []
  #firstBytes = 0
  #lastBytes = 0
  #dropped = 0

  /** Adds bytes. They are copied: a few of them may be a part of a large buffer. */
  write(bytes: Uint8Array): void {
    const first = bytes.slice(0, KEPT_BYTES - this.#firstBytes)
    if (first.length > 0) this.#first.push(first)
    this.#firstBytes += first.length
    const last = bytes.slice(Math.max(first.length, bytes.length - KEPT_BYTES))
    this.#dropped += bytes.length - first.length - last.length
    if (last.length === 0) return
    this.#last.push(last)
    this.#lastBytes += last.length
    // At twice as many, so that little is copied.
    if (this.#lastBytes > 2 * KEPT_BYTES) this.#shorten()
  }

  /** Notes bytes that were printed here and are not known any more. */
  skip(bytes: number): void {
    this.#firstBytes = KEPT_BYTES
    this.#dropped += bytes + this.#lastBytes
    this.#last = []
    this.#lastBytes = 0
  }

  /** Returns the text, with a line in place of what is missing. A line that was cut is missing as a whole: it may have a part of a secret. */
  get text(): string {
    if (this.#lastBytes > KEPT_BYTES) this.#shorten()
    const first = Buffer.concat(this.#first)
    const last = Buffer.concat(this.#last)
    if (this.#dropped === 0) return Buffer.concat([first, last]).toString()
    const begin = first.subarray(0, first.lastIndexOf(LINE_END) + 1)
    const end = last.subarray(last.indexOf(LINE_END) + 1)
    const missing = this.#dropped + first.length - begin.length + last.length - end.length
    return `${begin}[${missing} bytes are left out]\n${end}`
  }

  #shorten(): void {
    const all = Buffer.concat(this.#last)
    const kept = all.subarray(-KEPT_BYTES)
    this.#dropped += all.length - kept.length
    this.#last = [kept]
    this.#lastBytes = kept.length
  }
}

const LINE_END = '\n'.charCodeAt(0)
