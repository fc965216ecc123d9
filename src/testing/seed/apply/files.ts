import { WorkspaceError } from '../../../compute/workspace.ts'
import { BerthError, badRequest } from '../../../errors.ts'
import type { Caller } from '../../../http/caller.ts'
import type { Declared } from '../declared.ts'
import type { FileSource } from '../files.ts'
import type { Applying } from './applying.ts'

/**
 * Puts files into a workspace; those that stand there as they should are left alone, and so are others.
 *
 * @param folder where they go, relative to the workspace; empty for the workspace itself
 * @returns whether any was written
 */
export async function putFiles(
  { services }: Applying,
  one: Declared<{ files: readonly FileSource[] | null }>,
  { caller, serverId, folder }: { caller: Caller; serverId: string; folder: string },
): Promise<boolean> {
  const workspace = services.servers.workspace(services.servers.getRow(caller, serverId))
  let written = false
  for (const source of one.value.files ?? []) {
    const path = folder === '' ? source.path : `${folder}/${source.path}`
    await one.telling(async () => {
      const bytes = read(source)
      const present = await workspace.read(path).catch((error) => {
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

/** A file's content; it may have gone since it was listed. */
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
