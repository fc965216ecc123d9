/** Default target of a browser after a sign-in, if the given path is missing or not one of this instance. */
const DEFAULT_PATH = '/'

/**
 * Returns the target of a browser after a sign-in, always a path of this instance. Browsers read `//host`, `/\host`
 * and paths with tabs or line breaks as addresses of other hosts.
 */
export const returnPath = (given: string | null | undefined): string => pathOf(given ?? '') ?? DEFAULT_PATH

/** Reports whether a browser may be sent to a path after a sign-in. */
export const isReturnPath = (given: string): boolean => pathOf(given) !== null

/** Returns a path of this instance with its query, as a browser resolves it; null for anything else. */
function pathOf(given: string): string | null {
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(given) || given.length > 8_000) return null
  const url = URL.parse(given, 'http://berth.invalid')
  if (url?.origin !== 'http://berth.invalid') return null
  const path = `${url.pathname}${url.search}`
  // Dot segments can leave a path that starts with two slashes.
  return path.startsWith('//') ? null : path
}
