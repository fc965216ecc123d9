import { PackageError } from './problem.ts'

/** Hashes that a registry may use, strongest first. */
const ALGORITHMS = ['sha512', 'sha384', 'sha256', 'sha1'] as const

/** Hashes of what is in a file, by Go's checksum database: of a module's archive, and of its go.mod. */
const CONTENT_ALGORITHMS = ['h1zip', 'h1mod'] as const

/** A hash over the bytes of a file. */
export interface FileHash {
  readonly algorithm: (typeof ALGORITHMS)[number]
  /** In lower-case hexadecimal. */
  readonly digest: string
}

/** The hash that a file must have. */
export type Integrity = FileHash | ContentHash

/** A hash over what is in a file. */
interface ContentHash {
  readonly algorithm: (typeof CONTENT_ALGORITHMS)[number]
  /** In lower-case hexadecimal. */
  readonly digest: string
}

/** Number of hexadecimal characters of each digest. */
const LENGTHS: Readonly<Record<Integrity['algorithm'], number>> = {
  sha512: 128,
  sha384: 96,
  sha256: 64,
  sha1: 40,
  h1zip: 64,
  h1mod: 64,
}

/** Reports whether a hash is over the bytes of a file. */
export const isOfBytes = (integrity: Integrity): integrity is FileHash =>
  ALGORITHMS.some((one) => one === integrity.algorithm)

/**
 * Returns the strongest hash in a registry's record of a tarball, or null if it has none.
 *
 * @param dist `dist` of a version, with `integrity` in the form of Subresource Integrity (hashes separated by blanks)
 * or `shasum`, a SHA-1 in hexadecimal
 */
export function integrityOf(dist: { integrity?: unknown; shasum?: unknown }): FileHash | null {
  const hashes = typeof dist.integrity === 'string' ? dist.integrity.trim().split(/\s+/) : []
  for (const algorithm of ALGORITHMS) {
    const hash = hashes.find((one) => one.startsWith(`${algorithm}-`))
    if (hash === undefined) continue
    const base64 = hash.slice(algorithm.length + 1).replace(/\?.*$/, '')
    const digest = Buffer.from(base64, 'base64').toString('hex')
    if (digest.length === LENGTHS[algorithm]) return { algorithm, digest }
  }
  const { shasum } = dist
  if (typeof shasum !== 'string' || !/^[0-9a-f]{40}$/i.test(shasum)) return null
  return { algorithm: 'sha1', digest: shasum.toLowerCase() }
}

/** Returns an integrity as a text that is also a valid file name: algorithm, `-`, digest. */
export const integrityText = ({ algorithm, digest }: Integrity): string => `${algorithm}-${digest}`

/**
 * Parses a text of `integrityText`.
 *
 * @throws PackageError if it is invalid
 */
export function parseIntegrity(text: unknown): Integrity {
  const [algorithm, digest = ''] = typeof text === 'string' ? text.split('-') : []
  const known = [...ALGORITHMS, ...CONTENT_ALGORITHMS].find((one) => one === algorithm)
  if (known === undefined || digest.length !== LENGTHS[known] || !/^[0-9a-f]+$/.test(digest)) {
    throw new PackageError('The record of a package in the cache is damaged.', 424)
  }
  return { algorithm: known, digest }
}
