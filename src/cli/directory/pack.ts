import { statSync } from 'node:fs'
import { lstat, open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Header, Pack } from 'tar-stream'
import { BODY_LIMIT } from '../../http/body.ts'
import { isGone } from '../../runtime/if-present.ts'
import { addEntry, tarBytes } from '../../runtime/tar-bytes.ts'
import type { CopyProgress } from '../copy/progress.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { formatBytes } from '../output.ts'
import type { DirectorySurvey, SurveyedFile, SurveyedLink } from './survey.ts'

/** Bytes of a file that are read at a time. */
const READ_BYTES = 256 * 1024

/** Bytes of a request reserved for the form around an archive. */
export const FORM_OVERHEAD = 64 * 1024

/** Number of largest files named when a directory is too large. */
const NAMED = 3

/** Bytes of files in a part: packed, with the form around it, it fits into a request in any case. */
const PART_BYTES = 16 * 1024 * 1024

/** Largest number of files and links in a part. */
const PART_ENTRIES = 5_000

/** The bytes of a file, or a piece of them. */
interface FileContent {
  /** Absolute. */
  readonly path: string
  /** As errors name it. */
  readonly name: string
  /** Where the piece begins. */
  readonly offset?: number
  readonly size: number
}

/** An entry of an archive; a file has content. */
interface PackEntry {
  readonly header: Partial<Header> & Pick<Header, 'name'>
  readonly content?: FileContent
}

/** Yields the bytes of a tar (POSIX.1-2001 pax) of entries, at the pace of the reader. */
async function* packEntries(
  entries: AsyncIterable<PackEntry> | Iterable<PackEntry>,
  progress?: CopyProgress,
): AsyncGenerator<Uint8Array> {
  const { pack } = await import('tar-stream')
  const tar = pack()
  yield* tarBytes(tar, async () => {
    for await (const entry of entries) {
      await add(tar, entry, progress)
      if (entry.header.type !== 'directory') progress?.copied()
    }
  })
}

/** Adds one entry; resolves when the next may follow. */
const add = (tar: Pack, { header, content }: PackEntry, progress?: CopyProgress): Promise<void> =>
  content === undefined
    ? addEntry(tar, header, null)
    : addEntry(
        tar,
        { ...header, size: content.size },
        progress === undefined ? readContent(content) : progress.count(readContent(content)),
      )

/**
 * Reads a file, or a piece of it, up to a size. Yields zeros in place of what the file has lost meanwhile.
 *
 * @throws CommandError if it cannot be read
 */
export async function* readContent({
  path,
  name,
  offset = 0,
  size,
}: FileContent): AsyncGenerator<Uint8Array> {
  let left = size
  try {
    await using handle = await open(path)
    while (left > 0) {
      const piece = new Uint8Array(Math.min(left, READ_BYTES))
      const { bytesRead } = await handle.read(piece, 0, piece.length, offset + size - left)
      if (bytesRead === 0) break
      left -= bytesRead
      yield piece.subarray(0, bytesRead)
    }
  } catch (error) {
    throw unreadable(name, error)
  }
  for (; left > 0; left -= Math.min(left, READ_BYTES)) yield new Uint8Array(Math.min(left, READ_BYTES))
}

/**
 * Packs everything at paths of a directory as tar: directories, files and links, with permission bits and times. Follows no
 * link; skips what is gone.
 *
 * @param paths relative to the directory; by default all of it
 * @throws CommandError if something cannot be read
 */
export const packLocalTree = (
  directory: string,
  progress: CopyProgress,
  paths: readonly string[] = [''],
): AsyncGenerator<Uint8Array> => packEntries(treeEntries(directory, paths, progress), progress)

async function* treeEntries(
  root: string,
  paths: readonly string[],
  progress: CopyProgress,
): AsyncGenerator<PackEntry> {
  for (const path of paths) yield* treeAt(root, path === '' ? '.' : `./${path}`, progress)
}

async function* treeAt(root: string, path: string, progress: CopyProgress): AsyncGenerator<PackEntry> {
  const full = join(root, path)
  const explain = (error: Error) => {
    throw unreadable(full, error)
  }
  const stats = await lstat(full).catch((error) => (isGone(error) ? null : explain(error)))
  if (stats === null) return
  const header = { name: path, mode: stats.mode & 0o777, mtime: stats.mtime }
  if (stats.isDirectory()) {
    yield { header: { ...header, type: 'directory' } }
    const names = await readdir(full).catch(explain)
    for (const name of names.sort()) yield* treeAt(root, `${path}/${name}`, progress)
  } else if (stats.isSymbolicLink())
    yield { header: { ...header, type: 'symlink', linkname: await readlink(full) } }
  else if (stats.isFile()) yield { header, content: { path: full, name: full, size: stats.size } }
  else progress.skipped(full)
}

/** A piece of a file that is too large for a request. */
export interface FilePiece {
  path: string
  /** In bytes. */
  offset: number
  /** Whether others follow. */
  more: boolean
}

/** What of a directory is sent in one request. */
interface DirectoryPart {
  readonly survey: DirectorySurvey
  /** Those files of it that are pieces. */
  readonly pieces: readonly FilePiece[]
  /** Bytes of all its files. */
  readonly bytes: number
}

/** Divides a directory into parts that fit into a request each, in order. There is at least one. */
export function inParts(survey: DirectorySurvey): DirectoryPart[] {
  const parts: {
    survey: { files: SurveyedFile[]; links: SurveyedLink[] }
    pieces: FilePiece[]
    bytes: number
  }[] = []
  const roomFor = (bytes: number) => {
    const last = parts.at(-1)
    const entries = last ? last.survey.files.length + last.survey.links.length : PART_ENTRIES
    const part =
      last && entries < PART_ENTRIES && last.bytes + bytes <= PART_BYTES
        ? last
        : { survey: { files: [], links: [] }, pieces: [], bytes: 0 }
    if (part !== last) parts.push(part)
    part.bytes += bytes
    return part
  }
  for (const file of survey.files) {
    for (let offset = 0; offset === 0 || offset < file.size; offset += PART_BYTES) {
      const bytes = Math.min(PART_BYTES, file.size - offset)
      const part = roomFor(bytes)
      part.survey.files.push(file)
      const more = offset + bytes < file.size
      if (offset > 0 || more) part.pieces.push({ path: file.path, offset, more })
    }
  }
  for (const link of survey.links) roomFor(0).survey.links.push(link)
  if (parts.length === 0) roomFor(0)
  return parts.map((part) => ({ ...part, survey: { ...survey, ...part.survey } }))
}

/** Packs a part of a directory, as `packDirectory` does. @throws CommandError if a file cannot be read */
export const packPart = ({ survey, pieces }: DirectoryPart): Promise<Uint8Array<ArrayBuffer>> =>
  packDirectory(survey, BODY_LIMIT - FORM_OVERHEAD, pieces)

/**
 * Packs the surveyed files of a directory as tar.gz.
 *
 * @param room limit of the archive in bytes
 * @param pieces those files of which a piece is packed
 * @throws CommandError if the archive is larger, with the names of the largest files, or if a file cannot be read
 */
export async function packDirectory(
  survey: DirectorySurvey,
  room: number = BODY_LIMIT - FORM_OVERHEAD,
  pieces: readonly FilePiece[] = [],
): Promise<Uint8Array<ArrayBuffer>> {
  const [{ createGzip }, { pipeline }] = await Promise.all([
    import('node:zlib'),
    import('node:stream/promises'),
  ])
  const chunks: Uint8Array[] = []
  let size = 0
  await pipeline(
    packEntries(surveyEntries(survey, pieces)),
    createGzip(),
    async (packed: AsyncIterable<Uint8Array>) => {
      for await (const chunk of packed) {
        size += chunk.byteLength
        if (size > room) throw tooLarge(survey)
        chunks.push(chunk)
      }
    },
  )
  return Buffer.concat(chunks)
}

/** Yields the files and links of a survey. Of permission bits the server takes whether a file is executable. */
function* surveyEntries(
  { root, files, links }: DirectorySurvey,
  pieces: readonly FilePiece[],
): Generator<PackEntry> {
  const offsets = new Map(pieces.map(({ path, offset }) => [path, offset]))
  for (const { path, isExecutable, modifiedAt } of files) {
    const header = { name: path, mode: isExecutable ? 0o755 : 0o644, mtime: new Date(modifiedAt) }
    const full = join(root, path)
    const size = sizeNow(full, path)
    const offset = offsets.get(path)
    const part =
      offset === undefined ? { size } : { offset, size: Math.max(0, Math.min(PART_BYTES, size - offset)) }
    yield { header, content: { path: full, name: path, ...part } }
  }
  for (const { path, target } of links) yield { header: { name: path, type: 'symlink', linkname: target } }
}

/** Returns the size of a file, which may have changed since the survey. */
function sizeNow(path: string, name: string): number {
  try {
    return statSync(path).size
  } catch (error) {
    throw unreadable(name, error)
  }
}

function tooLarge({ root, files }: DirectorySurvey): CommandError {
  const largest = [...files]
    .sort((a, b) => b.size - a.size)
    .slice(0, NAMED)
    .map(({ path, size }) => `${path} (${formatBytes(size)})`)
  return new CommandError(
    `${root} packs to more than the ${BODY_LIMIT / 1024 / 1024} MiB that a request may have. Its largest files are ${largest.join(', ')}. Leave out what the app does not need with a .berthignore file, send it in parts with "berth projects push", or give the code as a git repository with --git.`,
  )
}
