import { resolve } from 'node:path'
import type { FileManifest } from '../../resources/files/manifest.ts'
import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { OutgoingDirectory, type SendProgress } from './outgoing.ts'
import { notesOn } from './report.ts'
import type { DirectorySurvey } from './survey.ts'

/** What a directory was published as. */
export interface DirectoryPublication {
  readonly published: ResponseOf<'deployments.create'>
  /** The directory as it was sent. */
  readonly survey: DirectorySurvey
  /** Paths that were sent. */
  readonly sent: readonly string[]
  /** Number of files that were removed. */
  readonly removed: number
}

/** Publishes a directory in a server's workspace, again and again. Sends what differs from what it sent last. */
export class DirectoryDeployment {
  readonly directory: OutgoingDirectory
  /** What did not come up, if that was sent last: it is sent no second time. */
  #failed: FileManifest | null = null
  /** Whether the last sending failed, so that the server may report a failed change. */
  #hasFailed = false
  /** All paths that were sent and are to be removed when they are gone here. */
  readonly #known = new Set<string>()

  /**
   * @param given the directory as the person names it
   */
  constructor(
    private readonly context: ProcessContext,
    private readonly serverId: string,
    readonly given: string,
    /** The app's own directory, relative to the one that is sent; undefined for that itself. */
    private readonly appDirectory: string | undefined,
  ) {
    this.directory = new OutgoingDirectory(resolve(context.cwd, given))
  }

  /** Describes what is left out of the directory, and what few would expect to be sent; empty if there is neither. */
  get notes(): string {
    const { survey } = this.directory
    return survey === null ? '' : notesOn(survey, 'berth secrets import')
  }

  /**
   * Sends what of the directory the workspace lacks, or has with other content, removes what was sent earlier and is
   * gone, and publishes the workspace. The server undoes the change if that fails.
   *
   * @param client calls the instance, which may have another address than at the last call
   * @param clean whether to remove all other files
   * @param signal ends the waiting; a publication that has begun goes on
   * @returns null if nothing has changed since the last call
   * @throws CommandError if there is no file, one cannot be sent, or the version does not come up; the signal's reason if
   *   it aborts
   */
  async publish(
    client: Client,
    clean: boolean,
    onProgress: (progress: SendProgress) => void,
    signal: AbortSignal,
  ): Promise<DirectoryPublication | null> {
    return this.directory.track(signal, () => this.#publish(client, clean, onProgress, signal))
  }

  async #publish(
    client: Client,
    clean: boolean,
    onProgress: (progress: SendProgress) => void,
    signal: AbortSignal,
  ): Promise<DirectoryPublication | null> {
    const { directory, appDirectory } = this
    const files = await directory.read({ stderr: this.context.stderr, named: this.given })
    const { manifest } = files
    const { changed, extra } = directory.changedSince(files)
    const isSame = directory.sent !== null && !this.#hasFailed && changed.length + extra.length === 0
    if (isSame || Bun.deepEquals(manifest, this.#failed)) return null
    directory.stage = 'incomplete'
    const paths = [...manifest.files, ...manifest.links].map(({ path }) => path)
    const here = new Set(paths)
    const removed = [...this.#known].filter((path) => !here.has(path))
    const fields = { removed, clean, ...(appDirectory && { directory: appDirectory }) }
    const params = { serverId: this.serverId }
    const request = (parts: Omit<PartsOf<'deployments.push'>, 'params'>) =>
      client.call('deployments.push', { params, signal, ...parts })
    for (const path of paths) this.#known.add(path)
    try {
      const { response, sent } = await directory.send({
        files,
        fields,
        request,
        onProgress: (progress) => {
          if (progress.isLast) directory.stage = 'last files'
          onProgress(progress)
        },
        signal,
      })
      if (response.deployment === null) throw new Error('Nothing is missing, so it is published.')
      this.#failed = null
      this.#hasFailed = false
      return { published: response.deployment, survey: files.survey, sent, removed: response.removed }
    } catch (error) {
      this.#hasFailed = true
      if (error instanceof CommandError && error.code === 'compute_backend_error') this.#failed = manifest
      throw error
    }
  }
}
