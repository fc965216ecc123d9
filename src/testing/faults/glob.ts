/** `*`, and `{id}` as documents write paths: one segment or a part of one. Two asterisks: anything. */
const WILDCARDS = /(?:\*|\{[^{}/]*\})+/g

/** Characters that mean something to `Bun.Glob` and nothing here. */
const SPECIAL = /[\\?[\]{}!,]/g

/** Matches any text. `Bun.Glob` supports `**` only as a whole segment. */
const ANYTHING = '{*,*/**/*}'

/** Reports whether a path has no wildcard. */
export const isLiteral = (glob: string): boolean => glob.search(WILDCARDS) === -1

/** Returns a function that reports whether a glob matches a whole path. */
export function globMatcher(glob: string): (path: string) => boolean {
  let pattern = ''
  let end = 0
  for (const { 0: wildcards, index } of glob.matchAll(WILDCARDS)) {
    pattern += quote(glob.slice(end, index)) + (isAnything(wildcards) ? ANYTHING : '*')
    end = index + wildcards.length
  }
  const matcher = new Bun.Glob(pattern + quote(glob.slice(end)))
  return (path) => matcher.match(path)
}

const isAnything = (wildcards: string): boolean => wildcards.replace(/\{[^}]*\}/g, ' ').includes('**')

const quote = (text: string): string => text.replace(SPECIAL, '\\$&')
