import type { Workspace } from '../../compute/workspace.ts'
import { AppDirectory } from '../../hosting/app-runtime/detect/app-directory.ts'
import { findVariables } from '../../hosting/app-runtime/detect/variables.ts'
import { MANIFEST_FILE, parseManifest } from '../../hosting/app-runtime/manifest.ts'
import { AppError, missingVariables } from '../../hosting/app-runtime/plan.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { bytesOf, listFiles, readRemote } from '../nouns/files.ts'

/**
 * Returns the names of the required variables of a project that have no value. The API reports them only in an event,
 * so this reads the project's files as berth does.
 *
 * @returns none if they cannot be determined, for example with a key that does not reach the server
 */
export async function findMissingVariables(client: Client, project: Project): Promise<string[]> {
  const { id, server_id, slug } = project
  // The response to an empty change contains the names that have a value.
  try {
    const app = new AppDirectory(remoteWorkspace(client, server_id), `projects/${slug}`)
    const manifest = parseManifest((await app.text(MANIFEST_FILE)) ?? '{}')
    const [env, own, shared] = await Promise.all([
      findVariables(app, manifest.env ?? {}),
      client.call('projectSecrets.set', { params: { projectId: id }, body: { secrets: {} } }),
      client.call('secrets.set', { body: { server_id, secrets: {} } }),
    ])
    return missingVariables({ env }, new Set([...own.keys, ...shared.keys]))
  } catch (error) {
    if (error instanceof CommandError || error instanceof AppError) return []
    throw error
  }
}

/** Returns the commands that continue a bring-up that waits for variables. */
export async function missingVariablesText(client: Client, project: Project): Promise<string> {
  const { id, slug } = project
  const names = await findMissingVariables(client, project)
  const which =
    names.length === 0
      ? 'variables that its code asks for in berth.json, app.json or .env.example'
      : `the variables that its code asks for: ${names.join(', ')}`
  return `${slug} waits for ${which}.
  Set them:           berth secrets set ${names.join(' ') || 'NAME'} --project ${id}
  Go on without them: berth projects init ${id} --proceed
`
}

/** Returns a workspace that reads a server's files through the API, with the methods that `findVariables` needs. */
function remoteWorkspace(client: Client, serverId: string): Workspace {
  const read = async (file: string): Promise<Uint8Array> => bytesOf(await readRemote(client, serverId, file))
  const list = () => listFiles(client, serverId)
  let files: Promise<string[]> | undefined
  const reading: Pick<Workspace, 'list' | 'read' | 'stat'> = {
    list,
    read,
    async stat(file) {
      files ??= list()
      return (await files).includes(file) ? { kind: 'file', size: 0 } : null
    },
  }
  return reading as Workspace
}
