import { join } from 'node:path'
import type { Header, Pack } from 'tar-stream'
import { BODY_LIMIT } from '../../http/body.ts'
import { CommandError } from '../errors.ts'
import { readLocal } from '../local-file.ts'
import { formatBytes } from '../output.ts'
import type { DirectorySurvey, LocalFile, LocalLink } from './survey.ts'

/** Bytes of a request reserved for the form around an archive. */
export const FORM_OVERHEAD = 64 * 1024

/** Number of largest files named when a directory is too large. */
const NAMED = 3

/** Bytes of files in a part: packed, with the form around it, it fits into a request in any case. */
const PART_BYTES = 16 * 1024 * 1024

/** Largest number of files and links in a part. */
const PART_ENTRIES = 5_000

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
  const parts: { survey: { files: LocalFile[]; links: LocalLink[] }; pieces: FilePiece[]; bytes: number }[] =
    []
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
  pack(survey, new Map(pieces.map(({ path, offset }) => [path, offset])), BODY_LIMIT - FORM_OVERHEAD)

/**
 * Packs the surveyed files of a directory as tar.gz (POSIX.1-1988 ustar, pax if that is too narrow).
 *
 * @param room limit of the archive in bytes
 * @throws CommandError if the archive is larger, with the names of the largest files, or if a file cannot be read
 */
export const packDirectory = (
  survey: DirectorySurvey,
  room: number = BODY_LIMIT - FORM_OVERHEAD,
): Promise<Uint8Array<ArrayBuffer>> => pack(survey, new Map(), room)

/** @param offsets where the pieces begin that are packed of some files, by path */
async function pack(
  survey: DirectorySurvey,
  offsets: ReadonlyMap<string, number>,
  room: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const [tarStream, { createGzip }, { pipeline }] = await Promise.all([
    import('tar-stream'),
    import('node:zlib'),
    import('node:stream/promises'),
  ])
  const tar = tarStream.pack()
  const chunks: Uint8Array[] = []
  let size = 0
  fill(tar, survey, offsets).catch((error: Error) => tar.destroy(error))
  await pipeline(tar, createGzip(), async (packed: AsyncIterable<Uint8Array>) => {
    for await (const chunk of packed) {
      size += chunk.byteLength
      if (size > room) throw tooLarge(survey)
      chunks.push(chunk)
    }
  })
  return Buffer.concat(chunks)
}

/** Adds the entries one after the other, at the pace of the reader. */
async function fill(
  tar: Pack,
  { root, files, links }: DirectorySurvey,
  offsets: ReadonlyMap<string, number>,
): Promise<void> {
  for (const { path, isExecutable, modifiedAt } of files) {
    const offset = offsets.get(path)
    const content = await readLocal(
      join(root, path),
      path,
      offset === undefined ? undefined : { offset, length: PART_BYTES },
    )
    const header = { name: path, mode: isExecutable ? 0o755 : 0o644, mtime: new Date(modifiedAt) }
    await add(tar, header, content)
  }
  for (const { path, target } of links) await add(tar, { name: path, type: 'symlink', linkname: target })
  tar.finalize()
}

/** Adds one entry. Resolves when the next may follow. */
const add = (
  tar: Pack,
  header: Partial<Header> & Pick<Header, 'name'>,
  content = new Uint8Array(),
): Promise<void> =>
  new Promise((resolve, reject) => {
    const entry = tar.entry(header, content, (error) => (error ? reject(error) : resolve()))
    // A truncated entry reports its error twice: to the callback and as an event.
    entry.on('error', reject)
  })

function tooLarge({ root, files }: DirectorySurvey): CommandError {
  const largest = [...files]
    .sort((a, b) => b.size - a.size)
    .slice(0, NAMED)
    .map(({ path, size }) => `${path} (${formatBytes(size)})`)
  return new CommandError(
    `${root} packs to more than the ${BODY_LIMIT / 1024 / 1024} MiB that a request may have. Its largest files are ${largest.join(', ')}. Leave out what the app does not need with a .berthignore file, send it in parts with "berth projects push", or give the code as a git repository with --git.`,
  )
}
