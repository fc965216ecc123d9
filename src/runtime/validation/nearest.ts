/** Most names that are returned. @bound reader */
const MOST = 4

/** Letters that may be wrong, as a part of a name's length. */
const TOLERANCE = 0.4

/** Returns the names that somebody may have meant by another one, nearest first; none if none is near. */
export function nearest(given: string, names: readonly string[]): string[] {
  const wanted = given.toLowerCase()
  const rated = names.map((name) => ({ name, distance: distanceOf(wanted, name.toLowerCase()) }))
  return rated
    .filter(({ distance }) => distance <= 1)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MOST)
    .map(({ name }) => name)
}

/** 0 for the same name, 1 for one that is barely near, more for others. */
function distanceOf(given: string, name: string): number {
  const edits = levenshtein(given, name) / (Math.max(given.length, name.length) * TOLERANCE)
  const parts = given.split(/[.\-_ ]/).filter((part) => part.length > 2)
  const shared = parts.some((part) => name.split('.').includes(part))
  return shared ? Math.min(edits, 1) : edits
}

/** Counts the letters that must be inserted, deleted, replaced or swapped with their neighbour to make one text of the other. */
function levenshtein(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let at = 1; at <= a.length; at += 1) {
    const next = [at]
    for (let to = 1; to <= b.length; to += 1) {
      const replaced = (row[to - 1] ?? 0) + (a[at - 1] === b[to - 1] ? 0 : 1)
      const swaps = at > 1 && to > 1 && a[at - 1] === b[to - 2] && a[at - 2] === b[to - 1]
      const swapped = swaps ? (before[to - 2] ?? 0) + 1 : replaced
      next.push(Math.min(replaced, swapped, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
