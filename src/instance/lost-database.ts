import { statSync } from 'node:fs'
import { join } from 'node:path'
import { StartupError } from '../errors.ts'
import type { DataDirectory } from '../storage/data-directory.ts'
import { SERVERS } from '../storage/state.ts'

/** Most ids that the refusal names. */
const MOST_NAMED = 3

/**
 * Refuses a data directory that has lost its database and still has files of servers: a start would begin a new state, in
 * which nobody owns them. A power cut can leave the database with 0 bytes.
 *
 * @throws StartupError
 */
export async function refuseLostDatabase({ path, database }: DataDirectory): Promise<void> {
  const found = statSync(database, { throwIfNoEntry: false })
  if (found?.isDirectory()) {
    throw new StartupError(
      `${database} is a directory, and berth's database belongs in its place. Move it away, put the database back, or choose another directory with --data.`,
    )
  }
  const servers = join(path, SERVERS)
  if ((found?.size ?? 0) > 0 || !statSync(servers, { throwIfNoEntry: false })?.isDirectory()) return
  const { ServerDirectories } = await import('../compute/local/server-directories.ts')
  const ids = new ServerDirectories(path).claimed()
  if (ids.length === 0) return
  const state = found === undefined ? 'is missing' : 'is empty'
  const more = ids.length > MOST_NAMED ? ', …' : ''
  const { wayBack } = await import('./way-back.ts')
  throw new StartupError(
    `The database ${database} ${state}, but ${servers} holds the files of ${ids.length === 1 ? 'a server' : `${ids.length} servers`} (${ids.slice(0, MOST_NAMED).join(', ')}${more}). Nothing was changed. Put the database back. ${wayBack(path)} To start anew, move ${servers} away first.`,
  )
}
