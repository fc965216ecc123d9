import { badRequest } from '../../../../errors.ts'

/** A commit's id in full, SHA-1 or SHA-256. */
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Reports whether a reference is the full id of a commit. */
export const isCommitId = (ref: string): boolean => COMMIT.test(ref)

/** Reports whether a text can name a branch or a tag (git check-ref-format), and can be no option. */
function isRefName(name: string): boolean {
  return (
    !/[\p{Cc}\p{Z} ~^:?*[\\]/u.test(name) &&
    name.isWellFormed() &&
    !/^[-/]|[/.]$|\.\.|@\{|\/\/|^@$/.test(name) &&
    name.split('/').every((part) => !part.startsWith('.') && !part.endsWith('.lock'))
  )
}

/**
 * Refuses a reference that cannot be a branch, a tag or a commit's full id.
 *
 * @throws BerthError 400
 */
export function checkReference(ref: string): void {
  if (isRefName(ref)) return
  throw badRequest('"source.ref" in the body: expected a branch, a tag or the full id of a commit.')
}

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
