/** Returns the milliseconds of one run of `work`. */
export async function time(work: () => unknown): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** Runs `work` some times, `warm` of them unmeasured, and returns the milliseconds of each. */
export async function samples(count: number, warm: number, work: () => unknown): Promise<number[]> {
  for (let n = 0; n < warm; n++) await work()
  const taken: number[] = []
  for (let n = 0; n < count; n++) taken.push(await time(work))
  return taken
}

/**
 * Takes measurements in turns, so that whatever else the machine does falls on all: each is first in every so many rounds.
 *
 * @param warm rounds before those that count
 * @param measurements null for one that is left out
 * @returns the values of each, by round
 */
export async function inTurns<Name extends string>(
  rounds: number,
  warm: number,
  measurements: Record<Name, (() => Promise<number>) | null>,
): Promise<Record<Name, number[]>> {
  const names = (Object.keys(measurements) as Name[]).filter((name) => measurements[name] !== null)
  const taken = Object.fromEntries(Object.keys(measurements).map((name) => [name, [] as number[]])) as Record<
    Name,
    number[]
  >
  for (let round = -warm; round < rounds; round++) {
    const first = (round + warm) % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const value = await measurements[name]?.()
      if (round >= 0 && value !== undefined) taken[name].push(value)
    }
  }
  return taken
}

/** Returns the median of the ratios of each round, so that a slow moment of the machine falls out. */
export const ratioOf = (values: readonly number[], bases: readonly number[]): number =>
  median(values.map((value, round) => value / (bases[round] ?? Number.NaN)))

/** Returns the value below which a share of the samples is; 0.5 is the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Returns the median. */
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

/** Formats milliseconds. */
export const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`

/** Formats a ratio. */
export const times = (value: number): string => `${value.toFixed(2)} ×`

/** Formats bytes. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
