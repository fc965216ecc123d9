/** The kinds of archive that are taken. */
export type ArchiveKind = 'zip' | 'tar' | 'tar.gz'

/** Bytes at the beginning by which a kind is told. */
export const HEAD_BYTES = 512

const KNOWN_OTHERS: readonly [string, readonly number[]][] = [
  ['an xz file', [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ['a bzip2 file', [0x42, 0x5a, 0x68]],
  ['a Zstandard file', [0x28, 0xb5, 0x2f, 0xfd]],
  ['a 7z archive', [0x37, 0x7a, 0xbc, 0xaf]],
  ['a rar archive', [0x52, 0x61, 0x72, 0x21]],
  ['a web page', [...Buffer.from('<!DOCTYPE')]],
  ['a web page', [...Buffer.from('<html')]],
]

/**
 * Tells an archive by its first bytes (PKWARE APPNOTE 4.3; RFC 1952, 2.3.1; POSIX pax, ustar), whatever its name.
 *
 * @returns the kind, or what it is instead, for a sentence
 */
export function archiveKind(head: Uint8Array): ArchiveKind | { instead: string } {
  const begins = (bytes: readonly number[]) => bytes.every((byte, index) => head[index] === byte)
  if (begins([0x50, 0x4b, 0x03, 0x04]) || begins([0x50, 0x4b, 0x05, 0x06])) return 'zip'
  if (begins([0x1f, 0x8b])) return 'tar.gz'
  if (isTarHeader(head)) return 'tar'
  if (head.length === 0) return { instead: 'empty' }
  const [instead] = KNOWN_OTHERS.find(([, bytes]) => begins(bytes)) ?? []
  return { instead: instead ?? 'something else' }
}

/** Whether a block is a tar header: its checksum, which counts itself as spaces, holds. Older ones have no magic. */
export function isTarHeader(block: Uint8Array): boolean {
  if (block.length < 512) return false
  const said = Number.parseInt(
    Buffer.from(block.subarray(148, 156))
      .toString('latin1')
      .replace(/[\0 ]+$/, ''),
    8,
  )
  let sum = 8 * 0x20
  for (let at = 0; at < 512; at += 1) if (at < 148 || at >= 156) sum += block[at] ?? 0
  return said === sum
}
