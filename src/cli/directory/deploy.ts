import { resolve } from 'node:path'
import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { formatBytes } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { StatusLine } from '../status-line.ts'
import { ManifestReader } from './manifest.ts'
import { notesOn, sizeOf } from './report.ts'
import { type SendProgress, type SendStage, sendManifest } from './send.ts'
import { type DirectorySurvey, isLeftOut, surveyDirectory } from './survey.ts'

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

/** Publishes a directory in a server's workspace, again and again. Sends what differs. */
export class DirectoryDeployment {
  /** Absolute path. */
  readonly directory: string
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What was sent last, and did come up; null before. */
  #sent: FileManifest | null = null
  /** What did not come up, if that was sent last: it is sent no second time. */
  #failed: FileManifest | null = null
  /** Whether the last sending failed, so that the server may tell of a failed change. */
  #hasFailed = false
  #stage: SendStage = 'done'
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
    this.directory = resolve(context.cwd, given)
  }

  /** Reports whether a path was left out of what was sent last. */
  readonly isLeftOut = (path: string): boolean => isLeftOut(this.#survey, path)

  /** How far the last publication is, or was when it was interrupted. */
  get stage(): SendStage {
    return this.#stage
  }

  /** Describes what is left out of the directory, and what few would expect to be sent; empty if there is neither. */
  get notes(): string {
    return this.#survey === null ? '' : notesOn(this.#survey, 'berth secrets import')
  }

  /** The number and size of the directory's files. */
  get size(): string {
    return this.#survey === null ? '' : sizeOf(this.#survey)
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
    // A publication after the first begins because something has changed in the directory, which may be nothing that is sent.
    this.#stage = this.#sent === null ? 'incomplete' : 'done'
    const publication = await this.#publish(client, clean, onProgress, signal).catch((error: unknown) => {
      if (!signal.aborted) this.#stage = 'done'
      throw error
    })
    this.#stage = 'done'
    return publication
  }

  async #publish(
    client: Client,
    clean: boolean,
    onProgress: (progress: SendProgress) => void,
    signal: AbortSignal,
  ): Promise<DirectoryPublication | null> {
    const survey = await surveyDirectory(this.directory)
    this.#survey = survey
    if (survey.files.length === 0)
      throw new CommandError(`${this.given} has no file to send. ${this.notes}`.trim())
    const manifest = await this.#describe(survey)
    const before = this.#sent
    const { changed, extra } =
      before === null ? { changed: [], extra: [] } : compareManifests(manifest, before)
    const paths = [...manifest.files, ...manifest.links].map(({ path }) => path)
    const here = new Set(paths)
    const removed = [...this.#known].filter((path) => !here.has(path))
    const isSame = before !== null && !this.#hasFailed && changed.length + extra.length === 0
    if (isSame || Bun.deepEquals(manifest, this.#failed)) return null
    this.#stage = 'incomplete'
    const { appDirectory } = this
    const fields = { removed, clean, ...(appDirectory && { directory: appDirectory }) }
    const params = { serverId: this.serverId }
    const request = (parts: Omit<PartsOf<'deployments.push'>, 'params'>) =>
      client.call('deployments.push', { params, signal, ...parts })
    for (const path of paths) this.#known.add(path)
    try {
      const { response, sent } = await sendManifest({
        survey,
        manifest,
        first: changed,
        fields,
        request,
        onProgress: (progress) => {
          if (progress.isLast) this.#stage = 'last files'
          onProgress(progress)
        },
        signal,
      })
      if (response.deployment === null) throw new Error('Nothing is missing, so it is published.')
      this.#failed = null
      this.#hasFailed = false
      this.#sent = manifest
      return { published: response.deployment, survey, sent, removed: response.removed }
    } catch (error) {
      this.#hasFailed = true
      if (error instanceof CommandError && error.code === 'compute_backend_error') this.#failed = manifest
      throw error
    }
  }

  /** Reads the files, and shows how far that is. */
  async #describe(survey: DirectorySurvey): Promise<FileManifest> {
    using status = new StatusLine(this.context.stderr)
    let read = 0
    status.show('', (elapsed) => `comparing ${sizeOf(survey)}: ${formatBytes(read)} read … ${elapsed}`)
    return await this.#reader.read(survey, (bytes) => {
      read += bytes
    })
  }
}
