import type { ResponseOf } from '../../client/client.ts'
import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { ManifestReader } from '../directory/manifest.ts'
import { inParts, packPart } from '../directory/pack.ts'
import { leftOutText, sizeOf } from '../directory/report.ts'
import { type DirectorySurvey, partOf, surveyDirectory } from '../directory/survey.ts'
import { CommandError } from '../errors.ts'
import type { LogLine } from '../log.ts'
import { count, formatBytes, printable } from '../output.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'
import { waitUntilFinal, watchBringUp } from './follow.ts'

/** The response of the API to a push. */
export type PushResponse = ResponseOf<'projects.push'>

/** What a push has led to. */
export interface PushOutcome {
  response: PushResponse
  project: Project
  /** The phases that the bring-up went through. */
  phases: readonly string[]
  /** Milliseconds from the survey of the directory to the app's response. */
  tookMs: number
  /** Whether the push before has failed, and the directory is again what runs. */
  isBack: boolean
}

/** How a pusher shows what it does. */
interface PusherView {
  /** Shows nothing but errors. */
  readonly isQuiet: boolean
  /** Shared with other pushers; by default one of its own. */
  readonly status?: StatusLine
  /** Name of the project on that line. */
  readonly label?: string
}

/** How often the files that a server lacks are sent. */
const MAX_ATTEMPTS = 2

/** Sends a directory to its project, again and again. */
export class Pusher {
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What was sent last, and did come up. */
  #sent: FileManifest | null = null
  /** What did not come up, if that was sent last. */
  #failed: { manifest: FileManifest; outcome: PushOutcome } | null = null

  constructor(
    private readonly session: CliSession,
    private readonly client: Client,
    private readonly directory: string,
    private readonly projectId: string,
    private readonly view: PusherView,
  ) {}

  /** Reports whether a path was left out of the last push. */
  readonly isLeftOut = (path: string): boolean => {
    const { ignored = [], generated = [] } = this.#survey?.leftOut ?? {}
    return [...ignored, ...generated].some((entry) => entry === path || entry === `${path}/`)
  }

  /**
   * Sends what differs, and waits until the app responds or has failed. Sends what has just failed no second time.
   *
   * @param onLine called with each line of the log that has been read meanwhile
   * @throws CommandError if nothing can be sent
   */
  async push(signal: AbortSignal, onLine: (line: LogLine) => void = () => {}): Promise<PushOutcome> {
    const began = performance.now()
    const { survey, manifest } = await this.#look()
    if (this.#failed !== null && Bun.deepEquals(manifest, this.#failed.manifest)) {
      const { outcome } = this.#failed
      return { ...outcome, response: { ...outcome.response, written: 0, removed: 0, began: null } }
    }
    const before = this.#sent
    const hadFailed = this.#failed !== null
    const { isQuiet, status, label } = this.view
    const response = await this.#send(survey, manifest)
    const { project } = response
    const phases: string[] = []
    const watch = (): Promise<Project> =>
      isQuiet
        ? waitUntilFinal(this.client, project, signal)
        : watchBringUp(this.session, this.client, project, {
            since: null,
            signal,
            status,
            label,
            onLine,
            onPhase: (phase) => phases.push(phase),
          })
    const final = response.began === null ? project : await watch()
    // The server has then put back what it had before.
    const hasFailed = final.init_phase === 'failed'
    if (hasFailed) this.#sent = before
    const tookMs = Math.round(performance.now() - began)
    const isBack = hadFailed && response.began === null && response.written + response.removed === 0
    const outcome = { response, project: final, phases, tookMs, isBack }
    this.#failed = hasFailed ? { manifest, outcome } : null
    return outcome
  }

  /**
   * Sends what differs, and does not wait for the app.
   *
   * @throws CommandError if nothing can be sent
   */
  async send(): Promise<PushResponse> {
    const { survey, manifest } = await this.#look()
    return this.#send(survey, manifest)
  }

  async #look(): Promise<{ survey: DirectorySurvey; manifest: FileManifest }> {
    const survey = await surveyDirectory(this.directory)
    this.#survey = survey
    if (survey.files.length === 0) {
      const leftOut = leftOutText(survey, 'berth secrets import')
      throw new CommandError(`${this.directory} has no file to send. ${leftOut}`.trim())
    }
    using own = new StatusLine(this.session.context.stderr)
    const { status = own, label = '', isQuiet } = this.view
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

  async #send(survey: DirectorySurvey, manifest: FileManifest): Promise<PushResponse> {
    // The server most likely lacks what has changed since the last push, and nothing else.
    const first = this.#sent === null ? [] : compareManifests(manifest, this.#sent).changed
    let response = await this.#request(survey, manifest, first)
    // A push before that fails meanwhile has its files put back.
    for (let attempt = 0; response.missing.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1)
      response = await this.#request(survey, manifest, response.missing)
    this.#sent = manifest
    if (response.missing.length === 0) return response
    throw new CommandError(
      `${printable(response.missing[0] ?? '')} changed on the server or here while it was sent. Push again.`,
    )
  }

  /** Sends the manifest, with the content of these paths in as many parts as it takes. */
  async #request(
    survey: DirectorySurvey,
    manifest: FileManifest,
    paths: readonly string[],
  ): Promise<PushResponse> {
    const params = { projectId: this.projectId }
    const files = manifest.files.map(({ path, sha256, executable }) => ({ path, sha256, executable }))
    const body = { files, links: manifest.links }
    if (paths.length === 0) return this.client.call('projects.push', { params, body })
    const parts = inParts(partOf(survey, paths))
    using own = new StatusLine(this.session.context.stderr)
    const { status = own, label = '', isQuiet } = this.view
    const all = parts.reduce((sum, { bytes }) => sum + bytes, 0)
    let sent = 0
    if (!isQuiet) {
      const before = `${label === '' ? '' : `${label}: `}sending ${count(paths.length, 'file')}, `
      status.show(label, (elapsed) => `${before}${formatBytes(sent)} of ${formatBytes(all)} … ${elapsed}`)
    }
    for (const [index, part] of parts.entries()) {
      const form = new FormData()
      form.set('files', JSON.stringify(files))
      form.set('links', JSON.stringify(manifest.links))
      if (part.pieces.length > 0) form.set('pieces', JSON.stringify(part.pieces))
      form.set('archive', new Blob([await packPart(part)]), 'archive')
      const response = await this.client.call('projects.push', { params, body, form })
      sent += part.bytes
      // Nothing is missing once the last part has come, or what is left is there already.
      if (response.missing.length === 0 || index === parts.length - 1) return response
    }
    throw new Error('There is at least one part.')
  }
}
