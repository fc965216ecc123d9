import type { FileManifest } from '../../resources/files/manifest.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { type LocalFiles, OutgoingDirectory, type SendProgress } from '../directory/outgoing.ts'
import { notesOn } from '../directory/report.ts'
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

/** Sends a directory to its project, again and again: what differs from the project's files, which it replaces. */
export class Pusher {
  readonly directory: OutgoingDirectory
  /** What did not come up, if that was sent last. */
  #failed: { manifest: FileManifest; outcome: PushOutcome } | null = null

  constructor(
    private readonly session: CliSession,
    directory: string,
    private readonly projectId: string,
    private readonly options: PusherOptions,
  ) {
    this.directory = new OutgoingDirectory(directory)
  }

  /**
   * Sends what differs, and waits until the app responds or has failed. Sends what has just failed no second time.
   *
   * @param client calls the instance, which may have another address than at the last call
   * @param signal ends the waiting; a bring-up that has begun goes on
   * @param onLine called with each line of the log that has been read meanwhile
   * @throws CommandError if nothing can be sent; the signal's reason if it aborts
   */
  push(
    client: Client,
    signal: AbortSignal,
    onLine: (line: LogLine) => void = () => {},
  ): Promise<PushOutcome> {
    return this.directory.track(signal, () => this.#push(client, signal, onLine))
  }

  async #push(client: Client, signal: AbortSignal, onLine: (line: LogLine) => void): Promise<PushOutcome> {
    const began = performance.now()
    const { directory } = this
    const isFirst = directory.survey === null
    const files = await this.#read()
    const { survey, manifest } = files
    if (isFirst && !this.options.isQuiet) await this.session.context.stderr.write(notesOn(survey, null))
    if (this.#failed !== null && Bun.deepEquals(manifest, this.#failed.manifest)) {
      const { outcome } = this.#failed
      return {
        ...outcome,
        response: { ...outcome.response, written: 0, removed: 0, began: null },
        phases: [],
      }
    }
    const before = directory.sent
    const hadFailed = this.#failed !== null
    const { isQuiet, status, label } = this.options
    const { response, sent } = await this.#send(client, files, signal)
    const { project } = response
    // A connection that was lost may have left a bring-up under way.
    const isUp = response.began === null && isFinal(project)
    directory.stage = isUp ? 'done' : 'bring-up'
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
    if (hasFailed) directory.sent = before
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
    return (await this.#send(client, await this.#read(), new AbortController().signal)).response
  }

  #read(): Promise<LocalFiles> {
    const { stderr } = this.session.context
    return this.directory.read({ ...this.options, stderr, named: this.directory.path })
  }

  async #send(
    client: Client,
    files: LocalFiles,
    signal: AbortSignal,
  ): Promise<{ response: PushResponse; sent: readonly string[] }> {
    const { directory } = this
    const params = { projectId: this.projectId }
    using own = new StatusLine(this.session.context.stderr)
    const { status = own, label = '', isQuiet, appDirectory } = this.options
    let progress: SendProgress | null = null
    const { changed, extra } = directory.changedSince(files)
    if (changed.length + extra.length > 0) directory.stage = 'incomplete'
    const text = (elapsed: string): string => {
      const { files = 0, bytes = 0, sent = 0 } = progress ?? {}
      return `${label === '' ? '' : `${label}: `}sending ${count(files, 'file')}, ${formatBytes(sent)} of ${formatBytes(bytes)} … ${elapsed}`
    }
    return await directory.send({
      files,
      fields: appDirectory === undefined ? {} : { directory: appDirectory },
      // The response to the last part is quick, and says whether a bring-up has begun.
      request: (parts, isLast) =>
        client.call('projects.push', { params, ...parts, ...(isLast ? {} : { signal }) }),
      onProgress: (next) => {
        if (progress === null && next.files > 0 && !isQuiet) status.show(label, text)
        if (next.files > 0) directory.stage = 'incomplete'
        progress = next
      },
      signal,
    })
  }
}
