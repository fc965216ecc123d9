import type { Sink } from '../terminal.ts'

/** Lines of several writers on one terminal: a line that one has begun is ended before another goes on. */
export class Lines {
  readonly #sink: Sink
  /** Whose line has no end yet. */
  #open: string | null = null

  constructor(sink: Sink) {
    this.#sink = sink
  }

  /** Whether this writer's line has no end yet. */
  isOpen(writer: string): boolean {
    return this.#open === writer
  }

  /** Goes on with a writer's text; each of its lines begins with `gutter`. */
  async add(writer: string, text: string, gutter = ''): Promise<void> {
    if (text === '') return
    const isOpen = this.#open === writer
    const isWhole = text.endsWith('\n')
    const lines = (isWhole ? text.slice(0, -1) : text).split('\n')
    const shown = lines.map((line, index) => (index === 0 && isOpen ? line : gutter + line)).join('\n')
    const before = this.#open === null || isOpen ? '' : '\n'
    this.#open = isWhole ? null : writer
    await this.#sink.write(before + shown + (isWhole ? '\n' : ''))
  }

  /** A line, or several, of its own. */
  line(text: string): Promise<void> {
    return this.add('', `${text}\n`)
  }

  /** Ends the line that has no end yet. */
  async end(): Promise<void> {
    if (this.#open === null) return
    this.#open = null
    await this.#sink.write('\n')
  }
}
