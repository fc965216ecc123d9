import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Pace } from '../../../compute/local/pace.ts'
import { quoted, SourceError } from './errors.ts'
import { inWords, type SourceLimits } from './limits.ts'
import { findLinkOut } from './links.ts'

/**
 * Looks at a folder that was fetched, before it is placed: how much it holds, and that no link of it leads out.
 *
 * @param root absolute; berth's alone, so that nothing in it changes meanwhile
 * @throws SourceError that names the entry or the limit
 */
export async function checkTree(
  root: string,
  limits: Pick<SourceLimits, 'entries' | 'bytes'>,
): Promise<void> {
  const links = new Map<string, string>()
  const pace = new Pace()
  let entries = 0
  let bytes = 0
  const pending = ['']
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    // What git keeps for itself is no part of the code: only its size counts.
    const counted = folder !== '.git' && !folder.startsWith('.git/')
    for (const name of readdirSync(join(root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`
      const stats = lstatSync(join(root, path))
      if (counted) entries += 1
      if (entries > limits.entries) throw tooMany(limits)
      if (stats.isDirectory()) pending.push(path)
      else if (stats.isSymbolicLink()) links.set(path, readlinkSync(join(root, path)))
      else if (stats.isFile()) bytes += stats.size
      if (bytes > limits.bytes) throw tooLarge(limits)
      if (pace.due) await pace.rest()
    }
  }
  const out = findLinkOut(links)
  if (out !== null) throw linkOut(out)
}

/** The refusals that archives and repositories share. */
export const tooMany = ({ entries }: Pick<SourceLimits, 'entries'>): SourceError =>
  new SourceError(`It has more than ${entries} files and folders, which is the limit.`)

export const tooLarge = ({ bytes }: Pick<SourceLimits, 'bytes'>): SourceError =>
  new SourceError(
    `Its files have more than ${inWords(bytes)}, which is what a source may have and the server's storage has left. Remove files of the server, or use a larger tier.`,
  )

const linkOut = (path: string): SourceError =>
  new SourceError(
    `${quoted(path)} is a symbolic link that leads out of the project. Remove it or let it lead inside.`,
  )
