import { machineNow } from '../runtime/clock.ts'
import { briefId, ID_TIME_END, isWholeId } from './ids.ts'
import { paint, printable, type Style, shorten } from './output.ts'
import type { OutputStream } from './process-context.ts'

/** A column of a table: heading and cells. */
export interface Column<Row> {
  readonly heading: string
  readonly cell: (row: Row) => string
  readonly style?: (row: Row) => Style | undefined
  /** Aligns the column to the right, as for numbers. */
  readonly right?: boolean
  /** Where a terminal is too narrow, the column with the greatest number is left out first; none is never left out. */
  readonly minor?: number
  /** Whether its cells may be cut where leaving columns out is not enough. */
  readonly elastic?: boolean
}

/** How a table is laid out. */
export interface TableLayout {
  /** Shows everything in full, however wide. A program that reads the table gets it so. */
  readonly wide?: boolean | undefined
  /** Only the first column, without its heading. */
  readonly quiet?: boolean | undefined
}

/** Spaces between columns. */
const GAP = 2

/** Characters that an elastic column keeps rather than that a minor column is left out. */
const USUAL_ELASTIC = 64

/** Characters that an elastic column keeps. */
const LEAST_ELASTIC = 12

/** Width of a terminal that reports none. */
const USUAL_WIDTH = 80

/**
 * Returns rows as aligned columns under headings, one row per line, with a final newline. On a terminal ids are short,
 * times are relative, and the table is as wide as the terminal at most, unless it is to be wide.
 */
export function table<Row>(
  out: OutputStream,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { wide = false, quiet = false }: TableLayout = {},
): string {
  const [first] = columns
  if (quiet && first) return rows.map((row) => `${printable(first.cell(row))}\n`).join('')
  const full = columns.map((column) => ({
    column,
    cells: rows.map((row) => printable(column.cell(row))),
  }))
  const laidOut =
    out.isTTY && !wide
      ? fit(
          full.map(({ column, cells }) => ({ column, cells: briefCells(cells) })),
          out.columns ?? USUAL_WIDTH,
        )
      : full
  const lines = [laidOut.map(({ column }) => paint(out, 'dim', column.heading))]
  for (const [index, row] of rows.entries()) {
    lines.push(
      laidOut.map(({ column, cells }) => {
        const style = column.style?.(row)
        const cell = cells[index] ?? ''
        return style ? paint(out, style, cell) : cell
      }),
    )
  }
  const widths = laidOut.map(widthOf)
  const text = lines.map((line) =>
    line
      .map((cell, at) => {
        const gap = ' '.repeat(Math.max(0, (widths[at] ?? 0) - Bun.stringWidth(cell)))
        if (laidOut[at]?.column.right) return gap + cell
        return at === line.length - 1 ? cell : cell + gap
      })
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
  return `${text.join('\n')}\n`
}

/** A column with its cells as they are shown. */
interface Filled {
  readonly column: Pick<Column<never>, 'heading' | 'minor' | 'elastic'>
  readonly cells: readonly string[]
}

const widthOf = ({ column, cells }: Filled): number =>
  Math.max(column.heading.length, ...cells.map((cell) => Bun.stringWidth(cell)))

const totalWidth = (columns: readonly Filled[]): number =>
  columns.reduce((sum, column) => sum + widthOf(column) + GAP, -GAP)

/**
 * Cuts long elastic columns, leaves minor columns out, and then cuts elastic ones further, until a table fits. What cannot
 * be cut stays.
 */
function fit<Column extends Filled>(columns: readonly Column[], width: number): readonly Column[] {
  if (totalWidth(columns) <= width) return columns
  // One long text is not to take the place of all other columns.
  let kept: readonly Column[] = columns.map((filled) =>
    filled.column.elastic && widthOf(filled) > USUAL_ELASTIC
      ? { ...filled, cells: filled.cells.map((cell) => shorten(cell, USUAL_ELASTIC)) }
      : filled,
  )
  while (totalWidth(kept) > width) {
    const least = Math.max(...kept.map(({ column }) => column.minor ?? 0))
    if (least === 0) break
    kept = kept.filter(({ column }) => column.minor !== least)
  }
  let excess = totalWidth(kept) - width
  return kept.map((filled) => {
    if (excess <= 0 || !filled.column.elastic) return filled
    const before = widthOf(filled)
    const after = Math.max(before - excess, LEAST_ELASTIC, filled.column.heading.length)
    if (after >= before) return filled
    excess -= before - after
    return { ...filled, cells: filled.cells.map((cell) => shorten(cell, after)) }
  })
}

/** Returns cells as people read them: ids cut where no other of the column begins so, times as how long ago. */
function briefCells(cells: readonly string[]): string[] {
  const length = distinctLength(cells.filter(isWholeId))
  return cells.map((cell) => {
    if (isWholeId(cell)) return briefId(cell, length)
    return TIME.test(cell) ? timeAgo(cell, machineNow()) : cell
  })
}

/** Returns how many characters after the prefix of their kind distinguish ids, at least those of their time. */
function distinctLength(ids: readonly string[]): number {
  // With their prefixes: names of anybody's choice may look like ids that differ in nothing else.
  const distinct = new Set(ids)
  let length = ID_TIME_END
  while (new Set([...distinct].map((id) => briefId(id, length))).size < distinct.size) length += 1
  return length
}

/** Matches a time of the API: ISO 8601, in UTC, with milliseconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Days after which a date says more. @bound reader */
const MOST_DAYS = 30

/** Returns how long ago a time was, such as `12m ago`; the day of one long ago or to come. */
export function timeAgo(time: string, now: number): string {
  const ms = now - Date.parse(time)
  // Clocks differ a little, and an instance's clock can be moved.
  if (ms < -1_000 || ms > MOST_DAYS * 86_400_000) return time.slice(0, 16).replace('T', ' ')
  const unit = UNITS.find(([, length]) => ms >= length)
  return unit ? `${Math.floor(ms / unit[1])}${unit[0]} ago` : 'now'
}
