import { count, formatBytes, printable } from '../output.ts'
import type { DirectorySurvey } from './survey.ts'

/** Paths that are named one by one; of more only the number is given. */
const NAMED = 5

/** How many files of a directory go, and how large they are: `3 files, 1.2 KB`. */
export function sizeOf({ files, links }: DirectorySurvey): string {
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  return `${count(files.length + links.length, 'file')}, ${formatBytes(bytes)}`
}

/**
 * What of a directory stays behind; empty where all of it goes.
 *
 * @param sendSecrets what is typed before the name of a `.env` file to send the variables in it
 */
export function leftOutText(
  { leftOut: { generated, ignored, secret, special } }: DirectorySurvey,
  sendSecrets: string,
): string {
  const parts = [
    generated.length > 0 ? named(generated) : '',
    ignored.length > 0 ? `${named(ignored)} (by .gitignore)` : '',
    special.length > 0 ? `${named(special)} (no regular file)` : '',
    secret.length > 0
      ? `${named(secret)} (may hold secrets; ${sendSecrets} ${secret[0]} sends the variables in it)`
      : '',
  ].filter(Boolean)
  return parts.length === 0 ? '' : `Left out: ${printable(parts.join('; '))}.\n`
}

function named(paths: readonly string[]): string {
  const shown = paths.slice(0, NAMED).join(', ')
  return paths.length > NAMED ? `${shown} and ${paths.length - NAMED} more` : shown
}
