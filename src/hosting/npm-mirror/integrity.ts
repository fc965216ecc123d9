import { PackageError } from './problem.ts'

/** Hashes that a registry may use, strongest first. */
const ALGORITHMS = ['sha512', 'sha384', 'sha256', 'sha1'] as const

/** The hash that a file must have. */
export interface Integrity {
  readonly algorithm: (typeof ALGORITHMS)[number]
  /** In lower-case hexadecimal. */
  readonly digest: string
}

/** Number of hexadecimal characters of each digest. */
const LENGTHS: Readonly<Record<Integrity['algorithm'], number>> = {
  sha512: 128,
  sha384: 96,
  sha256: 64,
  sha1: 40,
}

/**
 * Returns the strongest hash in a registry's record of a tarball, or null if it has none.
 *
 * @param dist `dist` of a version, with `integrity` in the form of Subresource Integrity (hashes separated by blanks)
 * or `shasum`, a SHA-1 in hexadecimal
 */
export function integrityOf(dist: { integrity?: unknown; shasum?: unknown }): Integrity | null {
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
  const known = ALGORITHMS.find((one) => one === algorithm)
  if (known === undefined || digest.length !== LENGTHS[known] || !/^[0-9a-f]+$/.test(digest)) {
    throw new PackageError('The record of a package in the cache is damaged.', 424)
  }
  return { algorithm: known, digest }
}
