import { resolve } from 'node:path'
import type { FileManifest } from '../../resources/files/manifest.ts'
import { compareManifests } from '../../resources/files/manifest.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { count, formatBytes, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { StatusLine } from '../status-line.ts'
import { ManifestReader } from './manifest.ts'
import { PreviousFiles } from './previous-files.ts'
import { leftOutText, sizeOf } from './report.ts'
import { type DirectorySurvey, partOf, surveyDirectory } from './survey.ts'
import { removeFiles, removeOthers, uploadDirectory } from './upload.ts'

/** Writes a directory into a server's workspace, and later what has changed of it. */
export class DirectoryUpload {
  /** Absolute path. */
  readonly directory: string
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What the workspace has of the directory, as far as that is known. */
  #sent: FileManifest = { files: [], links: [] }
  /** What it had before the last call, if that was kept. */
  #before: { files: PreviousFiles; sent: FileManifest } | null = null
  /** What was put back last: it is sent no second time. */
  #refused: FileManifest | null = null

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
   * @param keeps whether to keep what is replaced or removed, for `putBack`
   * @returns the number of files of the directory
   * @throws CommandError if there is none, or one cannot be sent
   */
  async sendAll(clean: boolean, keeps: boolean): Promise<number> {
    const { stderr } = this.context
    const survey = await surveyDirectory(this.directory)
    const leftOut = leftOutText(survey, 'berth secrets import')
    if (survey.files.length === 0)
      throw new CommandError(`${this.given} has no file to send. ${leftOut}`.trim())
    const manifest = await this.#describe(survey)
    const paths = [...manifest.files, ...manifest.links].map(({ path }) => path)
    const params = { serverId: this.serverId }
    const present = await this.client.call('files.manifest', { params, body: { paths } })
    const { changed } = compareManifests(manifest, present)
    const keep = (others: readonly string[]): Promise<void> => this.#keep(keeps, present, changed, others)
    if (clean) {
      const removed = await removeOthers(this.client, this.serverId, survey, keep)
      if (removed > 0) await stderr.write(`Removed ${count(removed, 'other file')} from ${this.serverId}.\n`)
    } else await keep([])
    await this.#upload(partOf(survey, changed))
    this.#survey = survey
    this.#sent = manifest
    const kept = paths.length - changed.length
    const rest = kept === 0 ? '' : `; ${kept} of them unchanged`
    await stderr.write(`Uploaded ${printable(this.given)}: ${sizeOf(survey)}${rest}.\n${leftOut}`)
    return survey.files.length + survey.links.length
  }

  /**
   * Writes what has changed since the last call, and removes what is gone. Keeps what is replaced, for `putBack`.
   *
   * @throws CommandError if a file cannot be sent
   */
  async sendChanges(): Promise<{ sent: number; removed: number }> {
    const survey = await surveyDirectory(this.directory)
    const manifest = await this.#describe(survey)
    if (this.#refused !== null && Bun.deepEquals(manifest, this.#refused)) return { sent: 0, removed: 0 }
    const { changed, extra } = compareManifests(manifest, this.#sent)
    await this.#keep(true, this.#sent, changed, extra)
    await removeFiles(this.client, this.serverId, extra)
    await this.#upload(partOf(survey, changed))
    this.#survey = survey
    this.#sent = manifest
    return { sent: changed.length, removed: extra.length }
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

  /** Reports whether `putBack` can put back what was there before the last call. */
  get canPutBack(): boolean {
    return this.#before !== null
  }

  /** Puts back what the workspace had before the last call. @throws CommandError */
  async putBack(): Promise<void> {
    const before = this.#before
    this.#before = null
    if (before === null) return
    await before.files.putBack()
    this.#refused = this.#sent
    this.#sent = before.sent
  }

  /**
   * Keeps what is about to be replaced or removed.
   *
   * @param present what the workspace has of the directory
   */
  async #keep(
    keeps: boolean,
    present: FileManifest,
    changed: readonly string[],
    removed: readonly string[],
  ): Promise<void> {
    const there = new Set([...present.files, ...present.links].map(({ path }) => path))
    const kept = {
      present: [...changed.filter((path) => there.has(path)), ...removed],
      added: changed.filter((path) => !there.has(path)),
    }
    const files = keeps ? await PreviousFiles.keep(this.client, this.serverId, kept) : null
    this.#before = files && { files, sent: present }
    this.#refused = null
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
