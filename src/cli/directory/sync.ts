import { dirname } from 'node:path'
import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import { remotePath } from '../copy/place.ts'
import type { CopyProgress } from '../copy/progress.ts'
import { feedRemote, lookAt, quotePath, type RemoteShell, unpackRemote } from '../copy/remote.ts'
import { CommandError } from '../errors.ts'
import type { OutgoingDirectory } from './outgoing.ts'
import { packLocalTree } from './pack.ts'
import { type DirectorySurvey, partOf } from './survey.ts'

/** What a synchronization has done. */
export interface SyncOutcome {
  /** Paths of files and links that were sent. */
  readonly sent: readonly string[]
  /** Paths that were removed from the server. */
  readonly removed: readonly string[]
}

/**
 * Sends a directory to one of a server, again and again: each time what differs by content from the files of the server,
 * which are written in place.
 */
export class Synchronizer {
  readonly directory: OutgoingDirectory
  readonly #path: string
  readonly #deletes: boolean

  /**
   * @param target path on the server
   * @param deletes whether files of the server that the directory does not have are removed
   */
  constructor(directory: OutgoingDirectory, target: string, deletes: boolean) {
    this.directory = directory
    this.#path = remotePath(target)
    this.#deletes = deletes
  }

  /** Sends what differs. @throws CommandError */
  async run(shell: RemoteShell, progress: CopyProgress): Promise<SyncOutcome> {
    const { survey, manifest } = await this.directory.read()
    const { changed, extra } = compareManifests(manifest, await this.#describe(shell, manifest))
    const removed = this.#deletes ? keptApart(survey, extra) : []
    progress.expect(partOf(survey, changed).files.reduce((sum, { size }) => sum + size, 0))
    // First: a file may be in the way of a directory.
    if (removed.length > 0) await remove(shell, quotePath(this.#path), removed)
    if (changed.length > 0)
      await unpackRemote(shell, this.#path, packLocalTree(survey.root, progress, changed))
    return { sent: changed, removed }
  }

  /** Describes the directory of the server: all of it if others are removed, else what is here too. */
  async #describe(shell: RemoteShell, { files, links }: FileManifest): Promise<FileManifest> {
    const { kind } = await lookAt(shell, this.#path)
    if (kind === 'none') return { files: [], links: [] }
    if (kind !== 'directory') throw new CommandError(`${this.#path} on the server is not a directory.`)
    const paths = this.#deletes ? undefined : [...files, ...links].map(({ path }) => path)
    const directory = this.#path === '.' ? undefined : this.#path
    const { client, serverId, signal } = shell
    return client.call('files.manifest', { params: { serverId }, body: { directory, paths }, signal })
  }
}

/** Returns those of the server's paths to remove: not what would be left out here, such as results of a build. */
function keptApart({ leftOut, wouldLeaveOut }: DirectorySurvey, extra: readonly string[]): string[] {
  const present = Object.values(leftOut).flat()
  return extra.filter(
    (path) =>
      !wouldLeaveOut(path) &&
      !present.some((entry) => entry === path || (entry.endsWith('/') && path.startsWith(entry))),
  )
}

/** Returns the directories above a relative path, from the top. */
function directoriesAbove(path: string): string[] {
  const above: string[] = []
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) above.push(path.slice(0, at))
  return above
}

/** Removes files of a server, and directories that are empty then. */
async function remove(shell: RemoteShell, at: string, paths: readonly string[]): Promise<void> {
  await feedRemote(shell, `cd ${at} && xargs -0 rm -f --`, separated(paths.map((path) => `./${path}`)))
  const above = new Set(
    paths.map((path) => dirname(path)).flatMap((path) => [...directoriesAbove(path), path]),
  )
  above.delete('.')
  const deepestFirst = [...above].sort((a, b) => b.length - a.length).map((path) => `./${path}`)
  if (deepestFirst.length > 0)
    await feedRemote(shell, `cd ${at} && xargs -0 rmdir 2>/dev/null; :`, separated(deepestFirst))
}

/** Returns paths as xargs(1) reads them with -0. */
async function* separated(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(paths.map((path) => `${path}\0`).join(''))
}
