/** A commit's id in full, SHA-1 or SHA-256. */
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Reports whether a reference is the full id of a commit. */
export const isCommitId = (ref: string): boolean => COMMIT.test(ref)

/** Control characters, white space, and what git's own notations use. */
const NOT_IN_NAMES =
  '\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000~^:?*\\[\\\\'

/** Matches what can name a branch, a tag or a commit (git check-ref-format), and can be no option. */
export const REFERENCE = `^(?![-/.]|@$|.*(?:\\.\\.|@\\{|//|/\\.|\\.lock/|\\.lock$|[/.]$))[^${NOT_IN_NAMES}]+$`

const reference = new RegExp(REFERENCE)

const isRefName = (name: string): boolean => name.isWellFormed() && reference.test(name)

/** What to fetch: one reference of the repository, or one commit. */
export type Target =
  | { kind: 'branch'; name: string; source: string }
  | { kind: 'tag'; name: string; source: string }
  | { kind: 'commit'; source: string }

/**
 * Chooses what to fetch from the repository's list (`git ls-remote --symref`). A branch precedes a tag of the same
 * name; without a reference it is HEAD's.
 *
 * @returns null if there is none
 */
export function chooseTarget(listing: string, ref: string | undefined): Target | null {
  const known = new Set<string>()
  let head: string | null = null
  for (const line of listing.split('\n')) {
    const [value = '', name = ''] = line.split('\t')
    if (name === 'HEAD' && value.startsWith('ref: ')) head = value.slice('ref: '.length)
    else if (name !== '') known.add(name)
  }
  if (ref === undefined) {
    const branch = head?.startsWith('refs/heads/') ? head.slice('refs/heads/'.length) : null
    if (branch !== null && isRefName(branch) && known.has('HEAD')) {
      return { kind: 'branch', name: branch, source: `refs/heads/${branch}` }
    }
    return known.has('HEAD') ? { kind: 'commit', source: 'HEAD' } : null
  }
  const name = ref.replace(/^refs\/(?:heads|tags)\//, '')
  for (const [kind, source] of [
    ['branch', `refs/heads/${name}`],
    ['tag', `refs/tags/${name}`],
  ] as const) {
    if (known.has(source) && (ref === name || ref === source)) return { kind, name, source }
  }
  return known.has(ref) && ref.startsWith('refs/') ? { kind: 'commit', source: ref } : null
}
