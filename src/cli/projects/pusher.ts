import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { ManifestReader } from '../directory/manifest.ts'
import { notesOn, sizeOf } from '../directory/report.ts'
import { type SendProgress, type SendStage, sendManifest } from '../directory/send.ts'
import { type DirectorySurvey, isLeftOut, surveyDirectory } from '../directory/survey.ts'
import { CommandError } from '../errors.ts'
import type { LogLine } from '../log.ts'
import { count, formatBytes } from '../output.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'
import { isFinal, waitUntilFinal, watchBringUp } from './follow.ts'

/** The response of the API to a push. */
type PushResponse = ResponseOf<'projects.push'>

/** What a push has led to. */
export interface PushOutcome {
  response: PushResponse
  project: Project
  /** Paths that were sent. */
  sent: readonly string[]
  /** The phases that the bring-up went through. */
  phases: readonly string[]
  /** Milliseconds from the survey of the directory to the app's response. */
  tookMs: number
  /** Whether the push before has failed, and the directory is again what runs. */
  isBack: boolean
}

/** What a pusher sends beside the files, and how it shows what it does. */
interface PusherOptions {
  /** The app's own directory, relative to the code; by default it stays. */
  readonly appDirectory?: string
  /** Shows nothing but errors. */
  readonly isQuiet: boolean
  /** Shared with other pushers; by default one of its own. */
  readonly status?: StatusLine
  /** Name of the project on that line. */
  readonly label?: string
}

/** Sends a directory to its project, again and again. */
export class Pusher {
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What was sent last, and did come up. */
  #sent: FileManifest | null = null
  /** What did not come up, if that was sent last. */
  #failed: { manifest: FileManifest; outcome: PushOutcome } | null = null
  #stage: SendStage = 'done'

  constructor(
    private readonly session: CliSession,
    private readonly directory: string,
    private readonly projectId: string,
    private readonly options: PusherOptions,
  ) {}

  /** How far the last push is, or was when it was interrupted. */
  get stage(): SendStage {
    return this.#stage
  }

  /** Reports whether a path was left out of the last push. */
  readonly isLeftOut = (path: string): boolean => isLeftOut(this.#survey, path)

  /**
   * Sends what differs, and waits until the app responds or has failed. Sends what has just failed no second time.
   *
   * @param client calls the instance, which may have another address than at the last call
   * @param signal ends the waiting; a bring-up that has begun goes on
   * @param onLine called with each line of the log that has been read meanwhile
   * @throws CommandError if nothing can be sent; the signal's reason if it aborts
   */
  async push(
    client: Client,
    signal: AbortSignal,
    onLine: (line: LogLine) => void = () => {},
  ): Promise<PushOutcome> {
    // A push after the first begins because something has changed in the directory, which may be nothing that is sent.
    this.#stage = this.#sent === null ? 'incomplete' : 'done'
    const outcome = await this.#push(client, signal, onLine).catch((error: unknown) => {
      if (!signal.aborted) this.#stage = 'done'
      throw error
    })
    this.#stage = 'done'
    return outcome
  }

  async #push(client: Client, signal: AbortSignal, onLine: (line: LogLine) => void): Promise<PushOutcome> {
    const began = performance.now()
    const isFirst = this.#survey === null
    const { survey, manifest } = await this.#look()
    if (isFirst && !this.options.isQuiet) await this.session.context.stderr.write(notesOn(survey, null))
    if (this.#failed !== null && Bun.deepEquals(manifest, this.#failed.manifest)) {
      const { outcome } = this.#failed
      return {
        ...outcome,
        response: { ...outcome.response, written: 0, removed: 0, began: null },
        phases: [],
      }
    }
    const before = this.#sent
    const hadFailed = this.#failed !== null
    const { isQuiet, status, label } = this.options
    const { response, sent } = await this.#send(client, survey, manifest, signal)
    const { project } = response
    // A connection that was lost may have left a bring-up under way.
    const isUp = response.began === null && isFinal(project)
    this.#stage = isUp ? 'done' : 'bring-up'
    const phases: string[] = []
    const watch = (): Promise<Project> =>
      isQuiet
        ? waitUntilFinal(client, project, signal)
        : watchBringUp(this.session, client, project, {
            since: null,
            signal,
            status,
            label,
            onLine,
            onPhase: (phase) => phases.push(phase),
          })
    const final = isUp ? project : await watch()
    // The server has then put back what it had before.
    const hasFailed = final.init_phase === 'failed'
    if (hasFailed) this.#sent = before
    const tookMs = Math.round(performance.now() - began)
    const isBack = hadFailed && response.began === null && response.written + response.removed === 0
    const outcome = { response, project: final, sent, phases, tookMs, isBack }
    this.#failed = hasFailed ? { manifest, outcome } : null
    return outcome
  }

  /**
   * Sends what differs, and does not wait for the app.
   *
   * @throws CommandError if nothing can be sent
   */
  async send(client: Client): Promise<PushResponse> {
    const { survey, manifest } = await this.#look()
    return (await this.#send(client, survey, manifest, new AbortController().signal)).response
  }

  /**
   * Finds the files to send, and reads their hashes.
   *
   * @throws CommandError if there is none
   */
  async #look(): Promise<{ survey: DirectorySurvey; manifest: FileManifest }> {
    const survey = await surveyDirectory(this.directory)
    this.#survey = survey
    if (survey.files.length === 0) {
      const notes = notesOn(survey, 'berth secrets import')
      throw new CommandError(`${this.directory} has no file to send. ${notes}`.trim())
    }
    using own = new StatusLine(this.session.context.stderr)
    const { status = own, label = '', isQuiet } = this.options
    let read = 0
    if (!isQuiet) {
      const before = `${label === '' ? '' : `${label}: `}comparing ${sizeOf(survey)}: `
      status.show(label, (elapsed) => `${before}${formatBytes(read)} read … ${elapsed}`)
    }
    try {
      const manifest = await this.#reader.read(survey, (bytes) => {
        read += bytes
      })
      return { survey, manifest }
    } finally {
      status.end(label)
    }
  }

  async #send(
    client: Client,
    survey: DirectorySurvey,
    manifest: FileManifest,
    signal: AbortSignal,
  ): Promise<{ response: PushResponse; sent: readonly string[] }> {
    const params = { projectId: this.projectId }
    using own = new StatusLine(this.session.context.stderr)
    const { status = own, label = '', isQuiet, appDirectory } = this.options
    let progress: SendProgress | null = null
    const changes = this.#sent === null ? { changed: [], extra: [] } : compareManifests(manifest, this.#sent)
    if (changes.changed.length + changes.extra.length > 0) this.#stage = 'incomplete'
    const text = (elapsed: string): string => {
      const { files = 0, bytes = 0, sent = 0 } = progress ?? {}
      return `${label === '' ? '' : `${label}: `}sending ${count(files, 'file')}, ${formatBytes(sent)} of ${formatBytes(bytes)} … ${elapsed}`
    }
    const outcome = await sendManifest({
      survey,
      manifest,
      fields: appDirectory === undefined ? {} : { directory: appDirectory },
      // The server most likely lacks what has changed since the last push, and nothing else.
      first: changes.changed,
      // The response to the last part is quick, and says whether a bring-up has begun.
      request: (parts, isLast) =>
        client.call('projects.push', { params, ...parts, ...(isLast ? {} : { signal }) }),
      onProgress: (next) => {
        if (progress === null && next.files > 0 && !isQuiet) status.show(label, text)
        if (next.files > 0) this.#stage = 'incomplete'
        progress = next
      },
      signal,
    })
    this.#sent = manifest
    return outcome
  }
}
