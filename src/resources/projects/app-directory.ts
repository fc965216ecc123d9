import { t } from 'elysia'
import { badRequest } from '../../errors.ts'
import type { LinkedTree } from '../../hosting/app.ts'

/** The directory of an app in its source. */
export const AppDirectory = t.String({
  minLength: 1,
  maxLength: 1024,
  description:
    "The app's own directory, relative to the code. Detection and all commands run there; the whole code is kept.",
})

/**
 * Returns a directory of an app in its shortest form, empty for the source itself.
 *
 * @param field names it in the error
 * @throws BerthError 400 for one that is absolute, leaves the source, or has a control character
 */
export function parseAppDirectory(field: string, given: string): string {
  const names = given.split('/').filter((name) => name !== '' && name !== '.')
  if (given.startsWith('/') || names.includes('..') || /\p{Cc}/u.test(given)) {
    throw badRequest(
      `"${field}" in the body: expected a directory relative to the code, without "..", got ${JSON.stringify(given)}.`,
    )
  }
  return names.join('/')
}

/** Returns files and links that are described, over what is there already, as a source. */
export function describedTree(
  {
    files,
    links = [],
  }: { files: readonly { path: string }[]; links?: readonly { path: string; target: string }[] },
  below: LinkedTree | null = null,
): LinkedTree {
  const targets = new Map(links.map(({ path, target }) => [path, target]))
  const has = (path: string): boolean => [...files, ...links].some((one) => one.path.startsWith(`${path}/`))
  return {
    linkAt: (path) => targets.get(path) ?? (has(path) ? null : (below?.linkAt(path) ?? null)),
    hasDirectory: (path) => has(path) || (below?.hasDirectory(path) ?? false),
  }
}
