import { shellQuote } from '../../runtime/shell-quote.ts'
import { count, formatBytes, printable } from '../output.ts'
import type { DirectorySurvey } from './survey.ts'

/** Largest number of paths to name. Only the count of the others is shown. */
const NAMED = 5

/** Returns the number and size of a directory's files: `3 files, 1.2 KB`. */
export function sizeText({ files, links }: DirectorySurvey): string {
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
 * Describes what is not sent of a directory, and what is sent though few would expect it. Empty if there is neither, else
 * a line for each.
 *
 * @param sendSecrets command that sends the variables in a `.env` file, without the file's name; null leaves out what is
 *   usual, such as `.git` and ignored files
 */
export function notesOn(survey: DirectorySurvey, sendSecrets: string | null): string {
  const { trackedSecrets, pointers, missing, problems } = survey
  const notes = [
    leftOutText(survey, sendSecrets),
    trackedSecrets.length > 0
      ? `Sent although it may hold secrets: ${named(trackedSecrets)} (git tracks it; a .berthignore file can leave it out).`
      : '',
    pointers.length > 0
      ? `Sent as pointers of Git LFS, without their content: ${named(pointers)} ("git lfs pull" fetches it).`
      : '',
    missing > 0 ? `Not here: ${count(missing, 'tracked file')} that the sparse checkout leaves out.` : '',
    ...problems,
  ].filter(Boolean)
  return notes.map((note) => `${printable(note)}\n`).join('')
}

/** Describes the files of a directory that are not sent; empty if all are. */
function leftOutText({ files, leftOut }: DirectorySurvey, sendSecrets: string | null): string {
  const { generated, installed, ignored, special, unnameable, unfetched, secret } = leftOut
  const hasOwn = files.some(({ path }) => /(?:^|\/)\.berthignore$/.test(path))
  const by = hasOwn ? '.gitignore and .berthignore' : '.gitignore'
  const because = (paths: readonly string[], reason: string) =>
    paths.length > 0 ? `${named(paths)} (${reason})` : ''
  const usual = [
    generated.length > 0 ? named(generated) : '',
    because(ignored, `by ${by}`),
    because(special, 'no regular file'),
    because(
      secret,
      `may hold secrets; ${sendSecrets} ${shellQuote(secret.slice(0, 1))} sends the variables in it`,
    ),
  ]
  const unusual = [
    because(installed, 'committed, but the server installs packages itself'),
    because(unnameable, 'the name is not UTF-8'),
    because(unfetched, '"git submodule update --init" fetches it'),
  ]
  const parts = [...(sendSecrets === null ? [] : usual), ...unusual].filter(Boolean)
  return parts.length === 0 ? '' : `Left out: ${parts.join('; ')}.`
}

function named(paths: readonly string[]): string {
  const shown = paths.slice(0, NAMED).join(', ')
  return paths.length > NAMED ? `${shown} and ${paths.length - NAMED} more` : shown
}
