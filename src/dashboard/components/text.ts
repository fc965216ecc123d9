/** Escape sequences of terminals (ECMA-48): colours and the like. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g

/** More marks on a character than any script has. */
const PILED_MARKS = /(\p{M}{16})\p{M}+/gu

/** Returns the output of a program as a terminal shows it, without colours. */
export const withoutEscapes = (text: string): string =>
  drawable(text.replace(ESCAPES, '').split('\n').map(lastWritten).join('\n'))

/**
 * Returns a text of others without marks that pile up on a character. Chromium takes 9 s to lay out 64,000 of them, four
 * times as long for twice as many, and shows nothing else meanwhile.
 */
export const drawable = (text: string): string => text.replace(PILED_MARKS, '$1')

/**
 * Returns what a line shows after a program has returned to its start and overwritten it, as it does with its progress.
 * Not by a pattern: one that may match anywhere takes seconds for a line of 100 KB.
 */
function lastWritten(line: string): string {
  let end = line.length
  while (line[end - 1] === '\r') end -= 1
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

/** Characters of a goal in a title. */
const TITLE = 80

/** Characters of a reason in a list. */
const REASON = 300

/** Returns the first line of a goal, shortened: the title of a task or a build. */
export function goalTitle(goal: string): string {
  const [line = ''] = goal.trim().split('\n', 1)
  return line.length > TITLE ? `${line.slice(0, TITLE)}…` : line
}

/** Returns the first line of why a task failed; null if it did not, or is a build, whose log says it. */
export function reasonOf({ status, result = '' }: { status: string; result?: string }): string | null {
  const [line = ''] = result.trim().split('\n', 1)
  return status === 'failed' && line !== '' ? line.slice(0, REASON) : null
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** Returns a number of bytes in its largest decimal unit: `1.2 MB`. */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1)
  const value = bytes / 1_000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}
