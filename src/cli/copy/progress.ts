import { formatBytes } from '../output.ts'
import type { OutputStream } from '../process-context.ts'

/** Milliseconds before progress is shown: a short copy shows none. */
const PATIENCE_MS = 700

/** Milliseconds between two updates. */
const UPDATE_MS = 100

/** Counts what a copy has done, and shows it on a terminal if it takes long. */
export class CopyProgress implements Disposable {
  readonly #out: OutputStream
  #bytes = 0
  #files = 0
  #shownAt = performance.now() + PATIENCE_MS - UPDATE_MS
  #isShown = false

  constructor(out: OutputStream) {
    this.#out = out
  }

  /** Counts bytes. */
  readonly read = (bytes: number): void => {
    this.#bytes += bytes
    this.#show()
  }

  /** Counts a file or a link. */
  readonly packed = (): void => {
    this.#files += 1
  }

  /** Tells of an entry that is left out. */
  readonly skipped = (path: string): void => {
    void this.#out.write(`berth: left out ${path}: it is no file, directory or link\n`)
  }

  #show(): void {
    if (!this.#out.isTTY || performance.now() - this.#shownAt < UPDATE_MS) return
    this.#shownAt = performance.now()
    this.#isShown = true
    const files = this.#files > 1 ? `, ${this.#files} files` : ''
    void this.#out.write(`\r\x1b[K${formatBytes(this.#bytes)}${files}`)
  }

  /** Clears the line. Calling it again is harmless. */
  [Symbol.dispose](): void {
    if (this.#isShown) void this.#out.write('\r\x1b[K')
    this.#isShown = false
  }
}
