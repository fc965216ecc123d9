import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { checkTree } from '../tree.ts'
import { TreeWriter } from './writer.ts'

/**
 * Unpacks a zip, tar or tar.gz into a new directory `tree` of a staging directory. If the archive has only one top
 * directory, as those of forges and `npm pack` do, that directory is the code.
 *
 * @param file the archive, absolute
 * @returns the directory of the code, absolute
 * @throws SourceError that names the entry or the limit; the signal's reason
 */
export async function unpackArchive(
  file: string,
  staging: string,
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<string> {
  const { root, writer } = await unpackAsIs(file, staging, limits, signal)
  const [only, ...others] = writer.top
  if (only === undefined) throw new SourceError('It holds no files.')
  const code = others.length === 0 && only.kind === 'directory' ? join(root, only.name) : root
  await checkTree(code, limits)
  return code
}

/**
 * Unpacks an archive into a new directory `tree` of a staging directory, its top directory included. Its links are not
 * checked.
 *
 * @param file the archive, absolute
 * @returns the new directory, absolute, and what has written it
 * @throws SourceError that names the entry or the limit; the signal's reason
 */
export async function unpackAsIs(
  file: string,
  staging: string,
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<{ root: string; writer: TreeWriter }> {
  const kind = archiveKind(await Bun.file(file).slice(0, HEAD_BYTES).bytes())
  if (typeof kind === 'object') {
    throw new SourceError(`It is neither a zip nor a tar nor a tar.gz, but ${kind.instead}.`)
  }
  const root = join(staging, 'tree')
  mkdirSync(root, { mode: 0o700 })
  const writer = new TreeWriter(root, limits)
  if (kind === 'zip') {
    const { unpackZip } = await import('./zip.ts')
    await unpackZip(file, writer, limits, signal)
  } else {
    const { unpackTar } = await import('./tar.ts')
    await unpackTar(file, kind === 'tar.gz', writer, limits, signal)
  }
  await writer.finish()
  return { root, writer }
}

/** The supported kinds of archive. */
type ArchiveKind = 'zip' | 'tar' | 'tar.gz'

/** Number of first bytes of a file that identify its kind. */
const HEAD_BYTES = 512

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
 * Identifies an archive by its first bytes, whatever its name (PKWARE APPNOTE 4.3; RFC 1952, section 2.3.1; POSIX
 * pax, ustar).
 *
 * @returns the kind, or a description of what it is instead
 */
function archiveKind(head: Uint8Array): ArchiveKind | { instead: string } {
  const begins = (bytes: readonly number[]) => bytes.every((byte, index) => head[index] === byte)
  if (begins([0x50, 0x4b, 0x03, 0x04]) || begins([0x50, 0x4b, 0x05, 0x06])) return 'zip'
  if (begins([0x1f, 0x8b])) return 'tar.gz'
  if (isTarHeader(head) || isEndOfTar(head)) return 'tar'
  if (head.length === 0) return { instead: 'empty' }
  const [instead] = KNOWN_OTHERS.find(([, bytes]) => begins(bytes)) ?? []
  return { instead: instead ?? 'something else' }
}

/**
 * Reports whether a block is a tar header, by its checksum, which counts itself as spaces. Old headers have no magic
 * number.
 */
function isTarHeader(block: Uint8Array): boolean {
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

/** Reports whether a block is the end of a tar, which one without files begins with. */
const isEndOfTar = (block: Uint8Array): boolean =>
  block.length >= 512 && block.subarray(0, 512).every((byte) => byte === 0)
