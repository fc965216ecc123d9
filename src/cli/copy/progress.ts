import { count as counted, formatBytes, formatDuration, printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { StatusLine } from '../status-line.ts'

/** Milliseconds that a copy has to take for its time to be shown. */
const LONG_MS = 1_000

/** Counts what a copy has done, and shows it on a terminal if it takes long. */
export class CopyProgress implements Disposable {
  readonly #out: OutputStream
  readonly #status: StatusLine
  readonly #began = performance.now()
  /** When the first bytes came. */
  #movedAt = 0
  #bytes = 0
  #files = 0
  #total: number | null = null

  constructor(out: OutputStream) {
    this.#status = new StatusLine(out)
    this.#out = this.#status.above(out)
    this.#status.show('', (elapsed) => this.#text(elapsed))
  }

  /** Sets how many bytes there are altogether, once that is known. */
  readonly expect = (bytes: number): void => {
    this.#total = bytes
  }

  /** Counts bytes. */
  readonly read = (bytes: number): void => {
    this.#movedAt ||= performance.now()
    this.#bytes += bytes
  }

  /** Counts a file or a link. */
  readonly copied = (): void => {
    this.#files += 1
  }

  /** Yields what is copied, and counts its bytes. */
  async *count(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.read(chunk.length)
      yield chunk
    }
  }

  /** Reports an entry that is left out: a socket, a pipe or a device. */
  readonly skipped = (path: string): void => {
    void this.#out.write(`berth: left out ${printable(path)}: it is not a file, directory or link\n`)
  }

  /** Returns what was copied: `2401 files, 191.3 MB in 2.3 s`. */
  summary(): string {
    return this.#files > 1 ? `${counted(this.#files, 'file')}, ${this.volume()}` : this.volume()
  }

  /** Returns the size of what was copied, and the time if that is long: `191.3 MB in 2.3 s`. */
  volume(): string {
    const ms = performance.now() - this.#began
    return formatBytes(this.#bytes) + (ms < LONG_MS ? '' : ` in ${formatDuration(ms)}`)
  }

  #text(elapsed: string): string {
    if (this.#movedAt === 0) return `comparing … ${elapsed}`
    const total = this.#total
    const share = total
      ? ` of ${formatBytes(total)} (${Math.min(99, Math.floor((100 * this.#bytes) / total))} %)`
      : ''
    const rate = Math.round(this.#bytes / Math.max(0.1, (performance.now() - this.#movedAt) / 1_000))
    const files = this.#files > 1 ? `, ${counted(this.#files, 'file')}` : ''
    return `${formatBytes(this.#bytes)}${share}${files}, ${formatBytes(rate)}/s`
  }

  /** Clears the line. Calling it again is harmless. */
  [Symbol.dispose](): void {
    this.#status[Symbol.dispose]()
  }
}
