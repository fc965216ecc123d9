import { SourceError } from './errors.ts'

/** As many as Linux follows in one path. */
const MAX_LINKS = 40
/** Bounds what all links of a tree together may cost to follow. */
const MAX_STEPS = 1_000_000

/**
 * Finds a symbolic link that leads out of the tree that it stands in, also by way of other links. One that leads
 * nowhere, or in a circle, leads not out.
 *
 * @param links path → target, both with `/`; paths are relative to the tree's folder
 * @returns the path of one that does, or null
 * @throws SourceError where following them takes too long
 */
export function findLinkOut(links: ReadonlyMap<string, string>): string | null {
  const budget = { steps: MAX_STEPS }
  for (const path of links.keys()) if (leadsOut(path, links, budget)) return path
  return null
}

function leadsOut(path: string, links: ReadonlyMap<string, string>, budget: { steps: number }): boolean {
  const walked: string[] = []
  // Last first: the next name is taken off the end.
  const ahead = path.split('/').reverse()
  let followed = 0
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    budget.steps -= 1
    if (budget.steps < 0)
      throw new SourceError('Its symbolic links are too many and too tangled to be checked.')
    if (name === '' || name === '.') continue
    if (name === '..') {
      if (walked.pop() === undefined) return true
      continue
    }
    walked.push(name)
    const target = links.get(walked.join('/'))
    if (target === undefined) continue
    if (target.startsWith('/')) return true
    followed += 1
    if (followed > MAX_LINKS) return false
    walked.pop()
    for (const part of target.split('/').reverse()) ahead.push(part)
  }
  return false
}
