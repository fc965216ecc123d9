import { integrityOf, integrityText } from './integrity.ts'
import { PackageError } from './problem.ts'
import { isVersion } from './registry-request.ts'

/** Where a tarball comes from and what it must be. */
export interface Dist {
  /** Its address at the registry. */
  readonly url: string
  /** As of `integrityText`. */
  readonly integrity: string
}

/** A package's tarballs by the names of their files. */
export type Dists = Readonly<Record<string, Dist>>

/** How tarballs are named to a client. */
export type TarballNaming =
  /** By the mirror's own address. */
  | { readonly kind: 'mirror'; readonly origin: string }
  /** By npm's public address, which npm itself replaces by that of its registry. */
  | { readonly kind: 'public' }
  /** Not at all: the client makes the address from the registry's. */
  | { readonly kind: 'none' }

/** npm's public registry, by whose name lock files call packages wherever they came from. */
export const PUBLIC_REGISTRY = 'https://registry.npmjs.org'

/** Stands in a kept document for the beginning of a tarball's address. */
const ORIGIN_PLACEHOLDER = 'berth:'

/**
 * How a client is told where tarballs lie, so that its lock file names no mirror, which another berth and other
 * machines could not reach: npm writes down what it is told, but asks its registry in place of the public one; Bun
 * writes down nothing where the address is the usual one of its registry, which it takes for granted where it is told
 * none. pnpm and Yarn write down addresses only where they differ from what the registry's would be.
 */
export function namingFor(userAgent: string | null, origin: string): TarballNaming {
  if (userAgent?.startsWith('npm/')) return { kind: 'public' }
  if (userAgent?.startsWith('Bun/')) return { kind: 'none' }
  return { kind: 'mirror', origin }
}

/** The text of a kept document, for a client. */
export function present(text: string, naming: TarballNaming): string {
  if (naming.kind === 'none') return text.replaceAll(/"tarball":"berth:[^"]*",/g, '')
  const origin = naming.kind === 'public' ? PUBLIC_REGISTRY : naming.origin
  // No text within the document looks so: quotation marks would be escaped.
  return text.replaceAll(`"tarball":"${ORIGIN_PLACEHOLDER}`, `"tarball":"${origin}`)
}

/** A registry's document in the form in which it is kept. */
export interface ParsedDocument {
  /** JSON; the addresses of tarballs are places to be filled. */
  readonly text: string
  readonly dists: Dists
}

/**
 * Reads a registry's document of a package. Versions whose tarballs could not be verified are left out.
 *
 * @throws PackageError where it is none of that package
 */
export function readDocument(name: string, document: unknown): ParsedDocument {
  if (!isObject(document) || document.name !== name || !isObject(document.versions)) {
    throw new PackageError(`The registry's answer for ${name} is no document of that package.`, 424)
  }
  const read = Object.entries(document.versions).flatMap(([version, given]) => {
    const one = readManifest(name, version, given)
    return one === null ? [] : [{ version, ...one }]
  })
  // Made from entries, whose names are the registry's and mean nothing to objects then.
  const versions = Object.fromEntries(read.map(({ version, manifest }) => [version, manifest]))
  const dists = Object.fromEntries(read.flatMap(({ dists }) => Object.entries(dists)))
  return { text: JSON.stringify({ ...document, versions }), dists }
}

/** Reads a registry's document of one version; null where its tarball could not be verified. */
export function readManifest(
  name: string,
  version: string,
  manifest: unknown,
): { manifest: unknown; dists: Dists } | null {
  if (!isObject(manifest) || !isObject(manifest.dist) || !isVersion(version)) return null
  const { tarball, ...rest } = manifest.dist
  const integrity = integrityOf(rest)
  // Not parsed: a document may have thousands.
  if (integrity === null || typeof tarball !== 'string' || !/^https?:\/\/[^/]/.test(tarball)) return null
  const file = fileOf(name, version)
  const dist = { url: tarball, integrity: integrityText(integrity) }
  const named = tarball.slice(tarball.lastIndexOf('/') + 1).replace(/[?#].*$/, '')
  return {
    // Before the hashes, of which there is one: a comma always follows.
    manifest: { ...manifest, dist: { tarball: `${ORIGIN_PLACEHOLDER}/${name}/-/${file}`, ...rest } },
    // Lock files may call it as the registry does.
    dists: Object.fromEntries(
      named === file || !named.endsWith('.tgz')
        ? [[file, dist]]
        : [
            [named, dist],
            [file, dist],
          ],
    ),
  }
}

/** The usual name of a version's tarball. */
const fileOf = (name: string, version: string): string => `${name.split('/').pop()}-${version}.tgz`

/** The version of which a file is the tarball by its usual name; null for another name. */
export function versionOf(name: string, file: string): string | null {
  const start = `${name.split('/').pop()}-`
  const version = file.slice(start.length, -'.tgz'.length)
  return file.startsWith(start) && isVersion(version) ? version : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
