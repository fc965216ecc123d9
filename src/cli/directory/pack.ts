import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Header, Pack } from 'tar-stream'
import { BODY_LIMIT } from '../../http/body.ts'
import { CommandError } from '../errors.ts'
import { readLocal } from '../local-file.ts'
import { formatBytes } from '../output.ts'
import type { DirectorySurvey } from './survey.ts'

/** Bytes of a request reserved for the form around an archive. */
export const FORM_OVERHEAD = 64 * 1024

/** Number of largest files named when a directory is too large. */
const NAMED = 3

/**
 * Packs the surveyed files of a directory as tar.gz (POSIX.1-1988 ustar, pax if that is too narrow).
 *
 * @param room limit of the archive in bytes
 * @throws CommandError if the archive is larger, with the names of the largest files, or if a file cannot be read
 */
export async function packDirectory(
  survey: DirectorySurvey,
  room: number = BODY_LIMIT - FORM_OVERHEAD,
): Promise<Uint8Array<ArrayBuffer>> {
  const { pack } = await import('tar-stream')
  const tar = pack()
  const chunks: Uint8Array[] = []
  let size = 0
  fill(tar, survey).catch((error: Error) => tar.destroy(error))
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
async function fill(tar: Pack, { root, files, links }: DirectorySurvey): Promise<void> {
  for (const { path, isExecutable, modifiedAt } of files) {
    const content = await readLocal(join(root, path), path)
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
    `${root} packs to more than the ${BODY_LIMIT / 1024 / 1024} MiB that a request may have. Its largest files are ${largest.join(', ')}. Leave out what the app does not need with a .gitignore file, or give the code as a git repository with --git.`,
  )
}
