/** Where the browser goes after a sign-in that names nothing, or something else than a path of this instance. */
const DEFAULT_PATH = '/access'

/**
 * Where the browser goes after a sign-in: a path of this instance, never elsewhere. Browsers read `//host`, `/\host`
 * and paths with tabs or line breaks in them as addresses of other hosts.
 */
export const returnPath = (given: string | null | undefined): string => pathOf(given ?? '') ?? DEFAULT_PATH

/** Whether a browser may be sent there after a sign-in. */
export const isReturnPath = (given: string): boolean => pathOf(given) !== null

/** A path of this instance with its query, as a browser resolves it; null for anything else. */
function pathOf(given: string): string | null {
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(given) || given.length > 8_000) return null
  const url = URL.parse(given, 'http://berth.invalid')
  if (url?.origin !== 'http://berth.invalid') return null
  const path = `${url.pathname}${url.search}`
  // Dots can leave a path with two slashes.
  return path.startsWith('//') ? null : path
}
