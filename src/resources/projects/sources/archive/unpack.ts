import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SourceError } from '../errors.ts'
import type { SourceLimits } from '../limits.ts'
import { checkTree } from '../tree.ts'
import { archiveKind, HEAD_BYTES } from './kind.ts'
import { TreeWriter } from './writer.ts'

/**
 * Unpacks a zip, tar or tar.gz into a fresh folder `tree` of a staging folder. Where all of it lies in one folder, as
 * in archives that forges and `npm pack` make, that folder is the code.
 *
 * @param file the archive, absolute
 * @returns the folder that is the code, absolute
 * @throws SourceError that names the entry or the limit; the signal's reason
 */
export async function unpackArchive(
  file: string,
  staging: string,
  limits: SourceLimits,
  signal: AbortSignal,
): Promise<string> {
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
  const [only, ...others] = writer.top
  if (only === undefined) throw new SourceError('It holds no files.')
  const code = others.length === 0 && only.kind === 'folder' ? join(root, only.name) : root
  await checkTree(code, limits)
  return code
}
