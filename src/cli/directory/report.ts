import { shellQuote } from '../../runtime/shell-quote.ts'
import { count, formatBytes, printable } from '../output.ts'
import type { DirectorySurvey } from './survey.ts'

/** Largest number of paths to name. Only the count of the others is shown. */
const NAMED = 5

/** Returns the number and size of a directory's files: `3 files, 1.2 KB`. */
export function sizeOf({ files, links }: DirectorySurvey): string {
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  return `${count(files.length + links.length, 'file')}, ${formatBytes(bytes)}`
}

/** Names the files that were sent: `index.html and 2 more sent`; empty if there are none. */
export function sentText(paths: readonly string[]): string {
  const [first, ...others] = paths
  if (first === undefined) return ''
  return `${printable(first)}${others.length > 0 ? ` and ${others.length} more` : ''} sent`
}

/**
 * Describes the files of a directory that are not sent; empty if all are.
 *
 * @param sendSecrets command that sends the variables in a `.env` file, without the file's name
 */
export function leftOutText(
  { files, leftOut: { generated, ignored, secret, special } }: DirectorySurvey,
  sendSecrets: string,
): string {
  const hasOwn = files.some(({ path }) => /(?:^|\/)\.berthignore$/.test(path))
  const by = hasOwn ? '.gitignore and .berthignore' : '.gitignore'
  const parts = [
    generated.length > 0 ? named(generated) : '',
    ignored.length > 0 ? `${named(ignored)} (by ${by})` : '',
    special.length > 0 ? `${named(special)} (no regular file)` : '',
    secret.length > 0
      ? `${named(secret)} (may hold secrets; ${sendSecrets} ${shellQuote(secret.slice(0, 1))} sends the variables in it)`
      : '',
  ].filter(Boolean)
  return parts.length === 0 ? '' : `Left out: ${printable(parts.join('; '))}.\n`
}

function named(paths: readonly string[]): string {
  const shown = paths.slice(0, NAMED).join(', ')
  return paths.length > NAMED ? `${shown} and ${paths.length - NAMED} more` : shown
}
