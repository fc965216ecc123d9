import { isObject } from '../../../runtime/is-object.ts'
import { integrityOf, integrityText } from '../integrity.ts'
import { PackageError } from '../problem.ts'
import type { Dists, ParsedDocument } from '../wanted.ts'
import { isVersion } from './request.ts'

/** The address of tarballs in a document that is sent to a client. */
type TarballUrl =
  /** With the mirror's own address. */
  | { readonly kind: 'mirror'; readonly origin: string }
  /** With npm's public address, which npm itself replaces by the address of its registry. */
  | { readonly kind: 'public' }
  /** Without an address. The client derives it from the registry's. */
  | { readonly kind: 'none' }

/** npm's public registry. Lock files name it for packages of any origin. */
const PUBLIC_REGISTRY = 'https://registry.npmjs.org'

/** Replaces the beginning of a tarball's address in a cached document. */
const ORIGIN_PLACEHOLDER = 'berth:'

/**
 * Chooses how to name tarballs to a client. Its lock file must not name the mirror, which other machines cannot
 * reach. npm records the address that it gets, but asks its registry in place of the public one; so does Yarn 1 with
 * berth's addition. Bun records nothing
 * if the address is its registry's usual one, which it assumes if there is none. pnpm and Yarn record only addresses
 * that differ from their registry's usual ones.
 */
export function tarballUrlFor(userAgent: string | null, origin: string): TarballUrl {
  if (userAgent !== null && /^(?:npm\/|yarn\/[01]\.|Deno\/)/.test(userAgent)) return { kind: 'public' }
  if (userAgent?.startsWith('Bun/')) return { kind: 'none' }
  return { kind: 'mirror', origin }
}

/** Returns the text of a cached document with the addresses of tarballs that a client is to see. */
export function rewriteTarballUrls(text: string, tarballUrl: TarballUrl): string {
  if (tarballUrl.kind === 'none') return text.replaceAll(/"tarball":"berth:(?:[^"\\]|\\.)*",/g, '')
  const origin = tarballUrl.kind === 'public' ? PUBLIC_REGISTRY : tarballUrl.origin
  // No string in the document can match: its quotation marks are escaped.
  return text.replaceAll(`"tarball":"${ORIGIN_PLACEHOLDER}`, `"tarball":"${origin}`)
}

/**
 * Parses a registry's document of a package. Omits versions whose tarballs could not be verified.
 *
 * @throws PackageError if it is no document of that package
 */
export function readDocument(name: string, document: unknown): ParsedDocument {
  if (!isObject(document) || document.name !== name || !isObject(document.versions)) {
    throw new PackageError(`The registry's response for ${name} is no document of that package.`, 424)
  }
  const read = Object.entries(document.versions).flatMap(([version, given]) => {
    const one = readManifest(name, version, given)
    return one === null ? [] : [{ version, ...one }]
  })
  // `fromEntries` treats names of the registry such as `__proto__` as ordinary properties.
  const versions = Object.fromEntries(read.map(({ version, manifest }) => [version, manifest]))
  const dists = Object.fromEntries(read.flatMap(({ dists }) => Object.entries(dists)))
  return { text: JSON.stringify({ ...document, versions }), dists }
}

/** Parses a registry's document of one version. Returns null if its tarball could not be verified. */
export function readManifest(
  name: string,
  version: string,
  manifest: unknown,
): { manifest: unknown; dists: Dists } | null {
  if (!isObject(manifest) || !isObject(manifest.dist) || !isVersion(version)) return null
  const { tarball, ...rest } = manifest.dist
  const integrity = integrityOf(rest)
  // Matched, not parsed as a URL: a document may have thousands.
  if (integrity === null || typeof tarball !== 'string' || !/^https?:\/\/[^/]/.test(tarball)) return null
  const file = fileOf(name, version)
  const dist = { url: tarball, integrity: integrityText(integrity) }
  const registryName = tarball.slice(tarball.lastIndexOf('/') + 1).replace(/[?#].*$/, '')
  return {
    // First, because a hash always follows: `rewriteTarballUrls` removes it together with its comma.
    manifest: { ...manifest, dist: { tarball: `${ORIGIN_PLACEHOLDER}/${name}/-/${file}`, ...rest } },
    // Lock files may use the registry's name of the file.
    dists: Object.fromEntries(
      registryName === file || !registryName.endsWith('.tgz')
        ? [[file, dist]]
        : [
            [registryName, dist],
            [file, dist],
          ],
    ),
  }
}

/** Returns the usual file name of a version's tarball. */
const fileOf = (name: string, version: string): string => `${name.split('/').pop()}-${version}.tgz`

/** Returns the version in a tarball's usual file name; null for any other name. */
export function versionOf(name: string, file: string): string | null {
  const start = `${name.split('/').pop()}-`
  const version = file.slice(start.length, -'.tgz'.length)
  return file.startsWith(start) && isVersion(version) ? version : null
}
