/** What a request's path asks a registry for. */
export type RegistryRequest =
  | { readonly kind: 'ping' }
  /** A package's document with all its versions. */
  | { readonly kind: 'packument'; readonly name: string }
  /** One version, by its number or by a tag such as `latest`. */
  | { readonly kind: 'version'; readonly name: string; readonly version: string }
  | { readonly kind: 'tags'; readonly name: string }
  | { readonly kind: 'tarball'; readonly name: string; readonly file: string }

/** A package's name, as npm allows it and, in capitals, has allowed it: no dot at the beginning, nothing of a path. */
const NAME = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*$/

/** Longest name of a package (npm's own limit). */
const MAX_NAME = 214

const VERSION = /^[\w~^-][\w.~^+-]{0,127}$/

const FILE = /^[\w~-][\w.~+-]{0,250}\.tgz$/

/** Whether a text is a package's name. */
export const isPackageName = (name: string): boolean => name.length <= MAX_NAME && NAME.test(name)

/** Whether a text is a version or a tag. */
export const isVersion = (version: string): boolean => VERSION.test(version)

/**
 * Reads a path of the npm registry's API, with the slash of a scoped name escaped or not. Null for what is no such path,
 * or none that a mirror answers: searches, audits, accounts.
 *
 * @param pathname as in a URL, still escaped
 */
export function parsePath(pathname: string): RegistryRequest | null {
  const parts = decode(pathname)?.slice(1).replace(/\/$/, '').split('/')
  if (parts === undefined) return null
  if (parts[0] === '-') return parseService(parts.slice(1))
  const name = takeName(parts)
  if (name === null) return null
  const [first, second] = parts
  if (parts.length === 0) return { kind: 'packument', name }
  if (parts.length === 1 && first !== undefined && isVersion(first))
    return { kind: 'version', name, version: first }
  if (parts.length === 2 && first === '-' && second !== undefined && FILE.test(second))
    return { kind: 'tarball', name, file: second }
  return null
}

/** `/-/ping` and `/-/package/NAME/dist-tags`. */
function parseService(parts: string[]): RegistryRequest | null {
  const service = parts.shift()
  if (service === 'ping' && parts.length === 0) return { kind: 'ping' }
  const name = service === 'package' ? takeName(parts) : null
  return name !== null && parts.length === 1 && parts[0] === 'dist-tags' ? { kind: 'tags', name } : null
}

/** Takes a name off the beginning of a path. */
function takeName(parts: string[]): string | null {
  const name = parts.splice(0, parts[0]?.startsWith('@') ? 2 : 1).join('/')
  return isPackageName(name) ? name : null
}

function decode(pathname: string): string | null {
  try {
    return decodeURIComponent(pathname)
  } catch {
    return null
  }
}
