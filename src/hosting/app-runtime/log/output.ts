import { LineStream } from '../../../runtime/lines.ts'
import type { Masks } from '../../../runtime/masks.ts'

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
