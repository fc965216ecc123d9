import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ServerDirectories } from '../compute/remains.ts'
import { messageOf } from '../runtime/error-info.ts'
import { isTrial } from '../storage/data-directory.ts'
import { removeTreeAside } from '../storage/files.ts'
import { hasDatabase, serversIn } from '../storage/state.ts'
import { askYes } from './confirm.ts'
import { CommandError } from './errors.ts'
import { isInteractive, type ProcessContext } from './process-context.ts'

/** A directory with files of a server that the database of its data directory does not name. */
export interface KeptDirectory {
  kind: 'directory'
  /** The id of the server. */
  id: string
  path: string
  detail: string
  /** The remedy for a person. */
  remedy: string
}

/** Finds the directories of servers that starts keep although no server of the database owns them. */
export function findKept(dataDirectories: readonly string[]): KeptDirectory[] {
  return dataDirectories.flatMap((dataDir) => {
    // Its servers end with the examination that runs.
    if (isTrial(dataDir)) return []
    // Before the database is read: a server has its record before its directory loses the mark.
    const ids = new ServerDirectories(dataDir).holding()
    if (ids.length === 0) return []
    const database = join(dataDir, 'berth.db')
    if (!hasDatabase(database))
      return ids.map((id) => describe(dataDir, id, 'there is no database that names its server'))
    try {
      const owned = new Set(serversIn(database))
      return ids
        .filter((id) => !owned.has(id) && existsSync(pathOf(dataDir, id)))
        .map((id) => describe(dataDir, id, 'no server of the database owns it'))
    } catch {
      // Their owners are unknown. A start reports what is wrong with the database.
      return []
    }
  })
}

const pathOf = (dataDir: string, id: string): string => join(dataDir, 'servers', id)

const describe = (dataDir: string, id: string, detail: string): KeptDirectory => ({
  kind: 'directory',
  id,
  path: pathOf(dataDir, id),
  detail,
  remedy: `berth doctor --leaks --fix-kept ${id}`,
})

/**
 * Removes a kept directory, after a question to the person at the terminal.
 *
 * @param id of its server
 * @param options `yes`: asks nobody
 * @throws CommandError if no such directory is kept, the person does not say yes, or it cannot be removed
 */
export async function removeKept(
  kept: readonly KeptDirectory[],
  id: string,
  context: ProcessContext,
  { yes }: { yes: boolean },
): Promise<KeptDirectory> {
  const [found, ...others] = kept.filter((directory) => directory.id === id)
  if (found === undefined) {
    const known = kept.length === 0 ? 'None is kept.' : `Kept are: ${kept.map((one) => one.id).join(', ')}.`
    throw new CommandError(`No directory of the id "${id}" is kept. ${known}`)
  }
  if (others.length > 0)
    throw new CommandError(
      `Several data directories keep one of the id "${id}". Name the data directory with --data.`,
    )
  const question = `${found.path} is removed with all files in it, for good. Go on?`
  if (!yes && isInteractive(context) && !(await askYes(question, context)))
    throw new CommandError('Nothing was changed.')
  try {
    await removeTreeAside(found.path)
  } catch (error) {
    throw new CommandError(`${found.path} could not be removed: ${messageOf(error)}`)
  }
  return found
}
