import type { FileRequest } from '../sites/upstream.ts'

/** The validators to compare conditions with. */
export interface Validators {
  /** Strong, with its quotes. */
  readonly etag: string
  /** Whole seconds since 1970, the resolution of HTTP dates. */
  readonly modified: number
}

/** The response to a conditional GET or HEAD. */
type ConditionResult = 'send' | 'not-modified' | 'failed'

/** Evaluates the conditions of a GET or HEAD in the order of RFC 9110, section 13.2.2. Ignores malformed ones. */
export function evaluate(request: FileRequest, { etag, modified }: Validators): ConditionResult {
  const ifMatch = request.header('if-match')
  const ifNoneMatch = request.header('if-none-match')
  if (ifMatch !== null) {
    if (!lists(ifMatch, etag, false)) return 'failed'
  } else {
    const since = dateOf(request.header('if-unmodified-since'))
    if (since !== null && modified > since) return 'failed'
  }
  if (ifNoneMatch !== null) return lists(ifNoneMatch, etag, true) ? 'not-modified' : 'send'
  const since = dateOf(request.header('if-modified-since'))
  return since !== null && modified <= since ? 'not-modified' : 'send'
}

/** Reports whether a range may be sent: `If-Range` is missing or names this content (RFC 9110, section 13.1.5). */
export function rangeApplies(request: FileRequest, { etag, modified }: Validators): boolean {
  const condition = request.header('if-range')
  if (condition === null) return true
  if (condition.includes('"')) return condition === etag
  return dateOf(condition) === modified
}

/**
 * Reports whether a list of entity tags contains `etag`. With `weakly`, `W/"x"` matches `"x"` (RFC 9110, section
 * 8.8.3.2).
 */
function lists(list: string, etag: string, weakly: boolean): boolean {
  if (list.trim() === '*') return true
  return [...list.matchAll(/(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g)].some(
    ([, weak, tag]) => tag === etag && (weakly || weak === undefined),
  )
}

function dateOf(text: string | null): number | null {
  if (text === null) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : at / 1_000
}
