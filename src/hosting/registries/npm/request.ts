import { percentDecoded } from '../../../runtime/decode.ts'

/** A parsed request to a registry. */
export type NpmRequest =
  | { readonly kind: 'ping' }
  /** A package's document with all its versions. */
  | { readonly kind: 'packument'; readonly name: string }
  /** One version, by number or by a tag such as `latest`. */
  | { readonly kind: 'version'; readonly name: string; readonly version: string }
  | { readonly kind: 'tags'; readonly name: string }
  | { readonly kind: 'tarball'; readonly name: string; readonly file: string }

/** A request for a package's document or a part of it. */
export type DocumentRequest = Exclude<NpmRequest, { kind: 'ping' | 'tarball' }>

/** Matches the package names that npm allows or, with capitals, once allowed: no leading dot, no path elements. */
const NAME = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*$/

/** Longest name of a package: npm's own limit. @bound system */
const MAX_NAME = 214

const VERSION = /^[\w~^-][\w.~^+-]{0,127}$/

const FILE = /^[\w~-][\w.~+-]{0,250}\.tgz$/

/** Reports whether a text is a valid package name. */
const isPackageName = (name: string): boolean => name.length <= MAX_NAME && NAME.test(name)

/** Reports whether a text is a valid version or tag. */
export const isVersion = (version: string): boolean => VERSION.test(version)

/**
 * Parses a path of the npm registry's API. The slash of a scoped name may be escaped. Returns null for any other
 * path, and for services that the mirror lacks: searches, audits, accounts.
 *
 * @param pathname as in a URL, still escaped
 */
export function parsePath(pathname: string): NpmRequest | null {
  const parts = percentDecoded(pathname)?.slice(1).replace(/\/$/, '').split('/')
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

/** Parses `/-/ping` and `/-/package/NAME/dist-tags`. */
function parseService(parts: string[]): NpmRequest | null {
  const service = parts.shift()
  if (service === 'ping' && parts.length === 0) return { kind: 'ping' }
  const name = service === 'package' ? takeName(parts) : null
  return name !== null && parts.length === 1 && parts[0] === 'dist-tags' ? { kind: 'tags', name } : null
}

/** Removes a package's name from the beginning of a path and returns it; null if it is invalid. */
function takeName(parts: string[]): string | null {
  const name = parts.splice(0, parts[0]?.startsWith('@') ? 2 : 1).join('/')
  return isPackageName(name) ? name : null
}
