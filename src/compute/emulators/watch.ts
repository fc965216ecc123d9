import type { IBuffer, IMarker, Terminal } from '@xterm/headless'
import { RE2JS } from 're2js'
import { compilePattern, PatternError } from '../../runtime/linear-pattern.ts'
import { rowText } from './text.ts'

/** Most instructions of a compiled pattern. It is looked for in 16 KiB of output at a time. @bound peer */
const MAX_INSTRUCTIONS = 300

/** The rows of a buffer before something was typed, and which of them have changed since. */
interface Baseline {
  readonly rows: readonly string[]
  readonly changed: Set<number>
  /** The first row, counted from the top of the scrollback. */
  readonly top: number
  /** Follows the first row while the scrollback loses rows; undefined on the alternate screen. */
  readonly marker: IMarker | undefined
  /** The row of the cursor, and its text up to the cursor. */
  readonly typedAt: number
  readonly typedAfter: string
}

/** Looks for a pattern in what a terminal shows, and in what has scrolled away since the last look. */
export class PatternWatch {
  #terminal: Terminal
  readonly #pattern: RE2JS
  /** What was there before, by the kind of buffer; null to look at everything. */
  #before: Record<'normal' | 'alternate', Baseline> | null
  /** The first row of the normal screen at the last look. */
  #seen: { readonly row: number; readonly marker: IMarker | undefined }

  /**
   * Begins to watch.
   *
   * @param onlyNew whether to look only at what changes from now on
   * @returns why the pattern is refused, if it is
   */
  static begin(terminal: Terminal, source: string, onlyNew: boolean): PatternWatch | string {
    try {
      const limits = { flags: RE2JS.MULTILINE, maxInstructions: MAX_INSTRUCTIONS }
      return new PatternWatch(terminal, compilePattern(source, limits), onlyNew)
    } catch (error) {
      if (error instanceof PatternError) return error.message
      throw error
    }
  }

  private constructor(terminal: Terminal, pattern: RE2JS, onlyNew: boolean) {
    this.#terminal = terminal
    this.#pattern = pattern
    this.#before = onlyNew ? this.#baselines() : null
    this.#seen = this.#topOfScreen()
  }

  /** Returns the first text that matches; null if there is none. */
  find(): string | null {
    const { active } = this.#terminal.buffer
    const isNormal = active.type === 'normal'
    const first = isNormal ? rowOf(this.#seen) : 0
    const text = this.#linesFrom(active, first).join('\n')
    this.#seen.marker?.dispose()
    this.#seen = this.#topOfScreen()
    const matcher = this.#pattern.matcher(text)
    return matcher.find() ? (matcher.group() ?? '') : null
  }

  /**
   * Counts what is there as seen, because the rows have been laid out anew.
   *
   * @param terminal the terminal that shows them, which may be another one than before
   */
  laidOut(terminal: Terminal): void {
    const isOther = terminal !== this.#terminal
    if (this.#before === null && !isOther) return
    this.#forget()
    this.#terminal = terminal
    if (this.#before === null) {
      this.#seen = { row: 0, marker: undefined }
      return
    }
    this.#before = this.#baselines()
    this.#seen = this.#topOfScreen()
  }

  /** Stops to follow rows. */
  dispose(): void {
    this.#forget()
  }

  /** Returns the lines from a row on that count, each of the rows that it is wrapped over. */
  #linesFrom(buffer: IBuffer, first: number): string[] {
    const before = this.#before?.[buffer.type] ?? null
    const lines: string[] = []
    let line = ''
    let isNew = false
    for (let row = first; row < buffer.length; row += 1) {
      const continues = buffer.getLine(row + 1)?.isWrapped === true
      const text = continues ? (buffer.getLine(row)?.translateToString(false) ?? '') : rowText(buffer, row)
      const fresh = before === null ? text : newText(before, row, text)
      isNew ||= fresh !== null
      line += fresh ?? text
      if (continues) continue
      if (isNew) lines.push(line)
      line = ''
      isNew = false
    }
    return lines
  }

  #baselines(): Record<'normal' | 'alternate', Baseline> {
    const { normal, alternate } = this.#terminal.buffer
    return { normal: this.#baseline(normal), alternate: this.#baseline(alternate) }
  }

  #baseline(buffer: IBuffer): Baseline {
    const { baseY, cursorX, cursorY } = buffer
    const rows = Array.from({ length: this.#terminal.rows }, (_, row) => rowText(buffer, baseY + row))
    const typedAfter = buffer.getLine(baseY + cursorY)?.translateToString(false, 0, cursorX) ?? ''
    const marker = buffer.type === 'normal' ? this.#topOfScreen().marker : undefined
    return { rows, changed: new Set(), top: baseY, marker, typedAt: cursorY, typedAfter }
  }

  /** A marker can only be set while the normal screen is shown. */
  #topOfScreen(): { row: number; marker: IMarker | undefined } {
    const { active, normal } = this.#terminal.buffer
    const marker = active.type === 'normal' ? this.#terminal.registerMarker(-active.cursorY) : undefined
    return { row: normal.baseY, marker }
  }

  #forget(): void {
    this.#seen.marker?.dispose()
    this.#before?.normal.marker?.dispose()
  }
}

/** Returns the row now, counted from the top of the scrollback; 0 if it is gone. */
const rowOf = ({ row, marker }: { row: number; marker: IMarker | undefined }): number =>
  Math.max(0, marker?.line ?? row)

/**
 * Returns what is new of a row's text; null if it is as before. Of the row in which the cursor was it is only what
 * follows, because the rest is the prompt that was typed at.
 */
function newText(before: Baseline, row: number, text: string): string | null {
  const { rows, changed, typedAt, typedAfter, top, marker } = before
  if (marker?.isDisposed) return text
  const index = row - rowOf({ row: top, marker })
  const old = rows[index]
  if (old === undefined) return text
  if (old.trimEnd() !== text.trimEnd()) changed.add(index)
  if (!changed.has(index)) return null
  return index === typedAt && text.startsWith(typedAfter) ? text.slice(typedAfter.length) : text
}
