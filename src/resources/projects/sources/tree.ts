import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Pace } from '../../../runtime/pace.ts'
import { quoted, SourceError } from './errors.ts'
import { formatMebibytes, type SourceLimits } from './limits.ts'

/**
 * Checks a fetched directory before it is placed: its size, and that none of its links leads out.
 *
 * @param root absolute; nothing else may change it meanwhile
 * @throws SourceError that names the entry or the limit
 */
export async function checkTree(
  root: string,
  limits: Pick<SourceLimits, 'entries' | 'bytes'>,
): Promise<void> {
  const links = new Map<string, string>()
  const pace = new Pace()
  let entries = 0
  let bytes = 0
  const pending = ['']
  for (let dir = pending.pop(); dir !== undefined; dir = pending.pop()) {
    // Git's own files are not part of the code: only their size counts.
    const counted = dir !== '.git' && !dir.startsWith('.git/')
    for (const name of readdirSync(join(root, dir))) {
      const path = dir === '' ? name : `${dir}/${name}`
      const stats = lstatSync(join(root, path))
      if (counted) entries += 1
      if (entries > limits.entries) throw tooMany(limits)
      if (stats.isDirectory()) pending.push(path)
      else if (stats.isSymbolicLink()) links.set(path, readlinkSync(join(root, path)))
      else if (stats.isFile()) bytes += stats.size
      if (bytes > limits.bytes) throw tooLarge(limits)
      if (pace.due) await pace.rest()
    }
  }
  checkLinks(links)
}

/**
 * Returns the paths of a fetched directory's files and links, without those of git.
 *
 * @param root absolute; nothing else may change it meanwhile
 */
export async function listTree(root: string): Promise<string[]> {
  const paths: string[] = []
  const pace = new Pace()
  const pending = ['']
  for (let dir = pending.pop(); dir !== undefined; dir = pending.pop()) {
    for (const entry of readdirSync(join(root, dir), { withFileTypes: true })) {
      const path = dir === '' ? entry.name : `${dir}/${entry.name}`
      if (!entry.isDirectory()) paths.push(path)
      else if (entry.name !== '.git') pending.push(path)
      if (pace.due) await pace.rest()
    }
  }
  return paths
}

/**
 * Checks that no link of a tree leads out of it.
 *
 * @param links path → target, both with `/`
 * @throws SourceError that names the link
 */
export function checkLinks(links: ReadonlyMap<string, string>): void {
  const out = findLinkOut(links)
  if (out !== null) throw linkOut(out)
}

/** Returns the refusals that archives and repositories share. */
export const tooMany = ({ entries }: Pick<SourceLimits, 'entries'>): SourceError =>
  new SourceError(`It has more than ${entries} files and directories, which is the limit.`)

export const tooLarge = ({ bytes }: Pick<SourceLimits, 'bytes'>): SourceError =>
  new SourceError(
    bytes === 0
      ? "The server's storage is full. Remove files of the server, or use a larger tier."
      : `Its files have more than ${formatMebibytes(bytes)}, which is what a source may have and the server's storage has left. Remove files of the server, or use a larger tier.`,
  )

const linkOut = (path: string): SourceError =>
  new SourceError(
    `${quoted(path)} is a symbolic link that leads out of the project. Remove it or let it lead inside.`,
  )

/** Number of links that Linux follows in one path. @bound system */
const MAX_LINKS = 40
/**
 * Most names of all paths and targets that are walked. It bounds the time that the links of a tree take.
 * @bound peer
 */
const MAX_STEPS = 1_000_000

/**
 * Finds a symbolic link that leads out of its tree, also through other links. Links to nowhere and loops do not.
 *
 * @param links path → target, both with `/`; paths are relative to the tree's directory
 * @returns its path, or null
 * @throws SourceError if following the links takes too long
 */
function findLinkOut(links: ReadonlyMap<string, string>): string | null {
  const tree = new LinkTree(links)
  for (const path of links.keys()) if (tree.leadsOut(path)) return path
  return null
}

/** Number of the tree's own directory, and of all paths that lead to no link. */
const TOP = 0
const ELSEWHERE = -1

/**
 * The links of a tree by their paths. To find one takes the same time at any depth: a path has a number, which is found by that
 * of the path above and the name.
 */
class LinkTree {
  readonly #numbers = new Map<string, number>()
  readonly #targets = new Map<number, string>()
  #stepsLeft = MAX_STEPS

  constructor(links: ReadonlyMap<string, string>) {
    for (const [path, target] of links) {
      let at = TOP
      for (const name of this.#split(path)) {
        const key = `${at}/${name}`
        at = this.#numbers.get(key) ?? this.#numbers.size + 1
        this.#numbers.set(key, at)
      }
      this.#targets.set(at, target)
    }
  }

  /** Reports whether a path leads out of the tree. */
  leadsOut(path: string): boolean {
    const walked = [TOP]
    // Last first: the next name is taken off the end.
    const ahead = this.#split(path).reverse()
    let followed = 0
    for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      if (name === '' || name === '.') continue
      if (name === '..') {
        if (walked.length === 1) return true
        walked.pop()
        continue
      }
      const next = this.#numbers.get(`${walked.at(-1)}/${name}`) ?? ELSEWHERE
      const target = this.#targets.get(next)
      if (target === undefined) {
        walked.push(next)
        continue
      }
      if (target.startsWith('/')) return true
      followed += 1
      if (followed > MAX_LINKS) return false
      for (const part of this.#split(target).reverse()) ahead.push(part)
    }
    return false
  }

  /** Returns the names of a path, each of which is a step. */
  #split(path: string): string[] {
    const names = path.split('/')
    this.#stepsLeft -= names.length
    if (this.#stepsLeft < 0)
      throw new SourceError('Its symbolic links are too many and too tangled to be checked.')
    return names
  }
}
