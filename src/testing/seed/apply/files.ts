import { WorkspaceError } from '../../../compute/workspace.ts'
import { BerthError, badRequest } from '../../../errors.ts'
import type { Caller } from '../../../http/caller.ts'
import type { FileSource } from '../files.ts'
import type { FixtureEntry } from '../fixture-entry.ts'
import type { ApplyContext } from './context.ts'

/**
 * Writes files into a workspace. Skips files with the right content, and leaves other files alone.
 *
 * @param directory the target, relative to the workspace; empty for the workspace itself
 * @returns whether any file was written
 */
export async function putFiles(
  { services }: ApplyContext,
  one: FixtureEntry<{ files: readonly FileSource[] | null }>,
  { caller, serverId, directory }: { caller: Caller; serverId: string; directory: string },
): Promise<boolean> {
  const workspace = services.servers.workspace(services.servers.getRow(caller, serverId))
  let written = false
  for (const source of one.value.files ?? []) {
    const path = directory === '' ? source.path : `${directory}/${source.path}`
    await one.run(async () => {
      const bytes = read(source)
      const present = await workspace.read(path, bytes.length).catch((error) => {
        if (error instanceof WorkspaceError) return null
        throw error
      })
      if (present && Buffer.from(present).equals(bytes)) return
      const content = Buffer.from(bytes).toString('base64')
      await services.files.write(caller, serverId, { path, content, encoding: 'base64' })
      written = true
    }, 'files')
  }
  return written
}

/**
 * Returns a file's content.
 *
 * @throws BerthError if it was removed since it was listed
 */
function read(source: FileSource): Uint8Array {
  try {
    return source.bytes()
  } catch (error) {
    if (error instanceof BerthError) throw error
    throw badRequest(
      `The file for ${source.path} cannot be read: ${error instanceof Error ? error.message : error}.`,
    )
  }
}
