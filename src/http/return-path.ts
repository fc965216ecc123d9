/** Default target of a browser after a sign-in, if the given path is missing or not one of this instance. */
const DEFAULT_PATH = '/'

/**
 * Returns the target of a browser after a sign-in, always a path of this instance. Browsers read `//host`, `/\host`
 * and paths with tabs or line breaks as addresses of other hosts.
 */
export const returnPath = (given: string | null | undefined): string => pathOf(given ?? '') ?? DEFAULT_PATH

/** Reports whether a browser may be sent to a path after a sign-in. */
export const isReturnPath = (given: string): boolean => pathOf(given) !== null

/** Most characters of such a path. @bound page */
export const RETURN_PATH_LIMIT = 8_000

/**
 * Matches such a path: printable ASCII without backslashes, and with no empty segment, since dot segments before one could
 * leave a path that begins with two slashes.
 */
export const RETURN_PATH =
  '^/(?:[!-"$-.0->@-\\[\\]-~]+(?:/[!-"$-.0->@-\\[\\]-~]+)*/?)?(?:[?#][!-\\[\\]-~]*)?$'

const returnPathPattern = new RegExp(RETURN_PATH)

/** Returns a path of this instance with its query, as a browser resolves it; null for anything else. */
function pathOf(given: string): string | null {
  if (given.length > RETURN_PATH_LIMIT || !returnPathPattern.test(given)) return null
  const { pathname, search } = new URL(given, 'http://berth.invalid')
  return `${pathname}${search}`
}
