/** `*`, and `{id}` as documents write paths: what stands between two slashes. `**`: anything. */
const WILDCARDS = /\*+|\{[^{}/]*\}/g

/** A part of a glob: a character that stands for itself, or what a wildcard takes any number of. */
type Part = string | { readonly takes: (character: string) => boolean }

const SEGMENT: Part = { takes: (character) => character !== '/' }
const ANYTHING: Part = { takes: () => true }

/** Whether a path is none but itself: no wildcard stands in it. */
export const isLiteral = (glob: string): boolean => glob.search(WILDCARDS) === -1

/**
 * Makes what tells whether a path is one that a glob means. It takes no more steps than the glob has characters times the
 * path has, whatever both are.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const parts: Part[] = []
  let end = 0
  for (const { 0: wildcard, index } of glob.matchAll(WILDCARDS)) {
    parts.push(...glob.slice(end, index), wildcard.startsWith('**') ? ANYTHING : SEGMENT)
    end = index + wildcard.length
  }
  parts.push(...glob.slice(end))
  return (path) => {
    let reached = withoutTaking(parts, new Set([0]))
    for (const character of path) {
      const next = new Set<number>()
      for (const at of reached) {
        const part = parts[at]
        if (part === character) next.add(at + 1)
        else if (typeof part === 'object' && part.takes(character)) next.add(at)
      }
      reached = withoutTaking(parts, next)
      if (reached.size === 0) return false
    }
    return reached.has(parts.length)
  }
}

/** Adds where one gets from there by wildcards that take nothing. */
function withoutTaking(parts: readonly Part[], places: Set<number>): Set<number> {
  // What is added meanwhile is visited too.
  for (const at of places) if (typeof parts[at] === 'object') places.add(at + 1)
  return places
}
