import { resolve } from 'node:path'
import type { FileManifest } from '../../resources/files/manifest.ts'
import { compareManifests } from '../../resources/files/manifest.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { count, formatBytes, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { StatusLine } from '../status-line.ts'
import { ManifestReader } from './manifest.ts'
import { leftOutText, sizeOf } from './report.ts'
import { type DirectorySurvey, partOf, surveyDirectory } from './survey.ts'
import { removeFiles, removeOthers, uploadDirectory } from './upload.ts'

/** Writes a directory into a server's workspace, and later what has changed of it. */
export class DirectoryUpload {
  /** Absolute path. */
  readonly directory: string
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What was sent last. */
  #sent: FileManifest = { files: [], links: [] }

  /**
   * @param given the directory as the person names it
   */
  constructor(
    private readonly context: ProcessContext,
    private readonly client: Client,
    private readonly serverId: string,
    private readonly given: string,
  ) {
    this.directory = resolve(context.cwd, given)
  }

  /** Reports whether a path was left out of what was sent last. */
  readonly isLeftOut = (path: string): boolean => {
    const { ignored = [], generated = [] } = this.#survey?.leftOut ?? {}
    return [...ignored, ...generated].some((entry) => entry === path || entry === `${path}/`)
  }

  /**
   * Writes the files of the directory that the workspace lacks, or has with other content.
   *
   * @param clean whether to remove all other files
   * @returns the number of files of the directory
   * @throws CommandError if there is none, or one cannot be sent
   */
  async sendAll(clean: boolean): Promise<number> {
    const { stderr } = this.context
    const survey = await surveyDirectory(this.directory)
    const leftOut = leftOutText(survey, 'berth secrets import')
    if (survey.files.length === 0)
      throw new CommandError(`${this.given} has no file to send. ${leftOut}`.trim())
    if (clean) {
      const removed = await removeOthers(this.client, this.serverId, survey)
      if (removed > 0) await stderr.write(`Removed ${count(removed, 'other file')} from ${this.serverId}.\n`)
    }
    const manifest = this.#reader.read(survey)
    const paths = [...manifest.files, ...manifest.links].map(({ path }) => path)
    const params = { serverId: this.serverId }
    const present = await this.client.call('files.manifest', { params, body: { paths } })
    const { changed } = compareManifests(manifest, present)
    await this.#upload(partOf(survey, changed))
    this.#survey = survey
    this.#sent = manifest
    const kept = paths.length - changed.length
    const rest = kept === 0 ? '' : `; ${kept} of them unchanged`
    await stderr.write(`Uploaded ${printable(this.given)}: ${sizeOf(survey)}${rest}.\n${leftOut}`)
    return survey.files.length + survey.links.length
  }

  /**
   * Writes what has changed since the last call, and removes what is gone.
   *
   * @throws CommandError if a file cannot be sent
   */
  async sendChanges(): Promise<{ sent: number; removed: number }> {
    const survey = await surveyDirectory(this.directory)
    const manifest = this.#reader.read(survey)
    const { changed, extra } = compareManifests(manifest, this.#sent)
    await removeFiles(this.client, this.serverId, extra)
    await this.#upload(partOf(survey, changed))
    this.#survey = survey
    this.#sent = manifest
    return { sent: changed.length, removed: extra.length }
  }

  /** Writes files, and shows how far that is. */
  async #upload(survey: DirectorySurvey): Promise<void> {
    using status = new StatusLine(this.context.stderr)
    let [files, bytes] = [0, 0]
    status.show('', () => `uploading ${count(files, 'file')}, ${formatBytes(bytes)} of ${sizeOf(survey)}`)
    await uploadDirectory(this.client, this.serverId, survey, ({ size }) => {
      files += 1
      bytes += size
    })
  }
}
