/** Milliseconds of one run of `work`. */
export async function time(work: () => unknown): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** Runs `work` some times, `warm` of them unmeasured, and gives the milliseconds of each. */
export async function samples(count: number, warm: number, work: () => unknown): Promise<number[]> {
  for (let n = 0; n < warm; n++) await work()
  const taken: number[] = []
  for (let n = 0; n < count; n++) taken.push(await time(work))
  return taken
}

/** The value below which a share of the samples lies; 0.5 is the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** The median. */
export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** One printed line: what was measured, how much, against what, and the goal. */
export interface Row {
  what: string
  measured: string
  baseline?: string
  ratio?: string
  goal?: string
  met?: boolean
}

/** Prints rows as a table. */
export function print(title: string, rows: readonly Row[]): void {
  const columns = ['what', 'measured', 'baseline', 'ratio', 'goal'] as const
  const cells = [
    [...columns],
    ...rows.map((row) =>
      columns.map((column) => `${row[column] ?? ''}${column === 'goal' ? mark(row) : ''}`),
    ),
  ]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)))
  console.log(`\n## ${title}\n`)
  cells.forEach((line, index) => {
    console.log(`| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`)
    if (index === 0) console.log(`|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`)
  })
}

const mark = (row: Row): string => (row.met === undefined ? '' : row.met ? ' ✓' : ' ✗')

/** Milliseconds for people. */
export const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`

/** A ratio for people. */
export const times = (value: number): string => `${value.toFixed(2)} ×`
