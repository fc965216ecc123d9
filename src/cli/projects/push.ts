import { basename, resolve } from 'node:path'
import type { ResponseOf } from '../../client/client.ts'
import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { ManifestReader } from '../directory/manifest.ts'
import { inParts, packPart } from '../directory/pack.ts'
import { repeatOnChange } from '../directory/repeat.ts'
import { leftOutText } from '../directory/report.ts'
import { type DirectorySurvey, partOf, surveyDirectory } from '../directory/survey.ts'
import { SENT_PROJECTS } from '../directory-choices.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { type LogLine, printLogEnd, projectLog } from '../log.ts'
import { count, formatBytes, formatDuration, printable, printJson } from '../output.ts'
import type { CommonOptions, Invocation } from '../runner.ts'
import { serverOrNew } from '../server-or-new.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'
import { createBlank, createFrom, rememberProject } from './create.ts'
import { AWAITS_SECRETS, waitUntilFinal, watchBringUp } from './follow.ts'
import { missingVariablesText } from './missing-variables.ts'
import { printRecent, takenChange } from './watched-app.ts'

/** The options of `berth projects push`. */
interface PushOptions extends CommonOptions {
  project?: string | undefined
  server?: string | undefined
  name?: string | undefined
  private?: true | undefined
  watch?: true | undefined
}

type PushResponse = ResponseOf<'projects.push'>

/** What a push has led to. */
interface Outcome {
  response: PushResponse
  project: Project
  /** The phases that the bring-up went through. */
  phases: readonly string[]
  /** Milliseconds from the survey of the directory to the app's response. */
  tookMs: number
  /** Whether the push before has failed, and the directory is again what runs. */
  isBack: boolean
}

/**
 * Sends what of a directory differs from its project, and follows the bring-up. Creates the project if the directory
 * has none.
 *
 * @param find returns the project that a person names
 * @returns the exit code
 */
export async function pushProject(
  invocation: Invocation<[directory: string | undefined], PushOptions>,
  find: (client: Client, named: string) => Promise<Project>,
): Promise<number> {
  const { session, args, options, connect, server } = invocation
  const client = await connect()
  const named = options.project === undefined ? null : await find(client, options.project)
  const { directory, project } = await findTarget(session, client, args[0], named)
  if (project === null) {
    await refuseTakenName(client, options.name ?? basename(directory))
    const create = { ...options, public: options.private ? undefined : (true as const) }
    const serverId = await serverOrNew(client, session.context, options, server)
    if (inParts(await surveyDirectory(directory)).length > 1) {
      const { id } = await createBlank(session, client, serverId, directory, create)
      if (options.watch) return watchAndPush(session, client, directory, id, options)
      const pusher = new Pusher(session, client, directory, id, { isQuiet: options.json ?? false })
      return untilInterrupted(async (signal) =>
        report(session, client, await pusher.push(signal), options, signal),
      )
    }
    const created = await createFrom(session, client, serverId, directory, create)
    if (!options.watch) return created.exitCode
    return watchAndPush(session, client, directory, created.project.id, options)
  }
  await rememberProject(session.context, directory, client, project.id)
  if (options.watch) return watchAndPush(session, client, directory, project.id, options)
  const pusher = new Pusher(session, client, directory, project.id, { isQuiet: options.json ?? false })
  return untilInterrupted(async (signal) =>
    report(session, client, await pusher.push(signal), options, signal),
  )
}

/** Returns the directory to send, and its project; null if it has none yet. */
async function findTarget(
  { context }: CliSession,
  client: Client,
  given: string | undefined,
  named: Project | null,
): Promise<{ directory: string; project: Project | null }> {
  const wanted = resolve(context.cwd, given ?? '.')
  const sent = SENT_PROJECTS.find({ ...context, cwd: wanted }, client.baseUrl)
  if (named !== null) return { directory: wanted, project: named }
  // A directory that is named is meant itself, not the one above that was sent.
  if (sent === null || (given !== undefined && sent.directory !== wanted))
    return { directory: wanted, project: null }
  const { projects } = await client.call('projects.listAll')
  const project = projects.find(({ id }) => id === sent.id)
  if (project) return { directory: sent.directory, project }
  await context.stderr.write(
    `The project that ${printable(sent.directory)} was sent to is gone: making another.\n`,
  )
  return { directory: sent.directory, project: null }
}

/** Throws CommandError if a project has the name already, which may be the one that a person means. */
async function refuseTakenName(client: Client, name: string): Promise<void> {
  const { projects } = await client.call('projects.listAll')
  const taken = projects.find((project) => project.name === name)
  if (taken === undefined) return
  throw new CommandError(
    `There is a project ${printable(name)} already, which this directory was never sent to from here. Replace its code with "berth projects push --project ${taken.slug}", or make another with "berth projects push --name NAME".`,
  )
}

/** Pushes, and again after each change, until Ctrl-C. A failure is told, and the next change tries again. */
async function watchAndPush(
  session: CliSession,
  client: Client,
  directory: string,
  projectId: string,
  options: PushOptions,
): Promise<number> {
  const { stderr } = session.context
  const pusher = new Pusher(session, client, directory, projectId, { isQuiet: options.json ?? false })
  let isFirst = true
  return repeatOnChange(directory, pusher.isLeftOut, async (signal) => {
    try {
      const outcome = await pusher.push(signal)
      const { written, removed, began } = outcome.response
      if (isFirst || outcome.isBack || written + removed > 0 || began !== null)
        await report(session, client, outcome, options, signal)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      await stderr.write(`berth: ${error.message}\n`)
    }
    if (isFirst) await stderr.write(`Watching ${printable(directory)}. Ctrl-C ends it.\n`)
    isFirst = false
  })
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
  #failed: { manifest: FileManifest; outcome: Outcome } | null = null

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
  async push(signal: AbortSignal, onLine: (line: LogLine) => void = () => {}): Promise<Outcome> {
    const began = performance.now()
    const survey = await surveyDirectory(this.directory)
    this.#survey = survey
    if (survey.files.length === 0) {
      const leftOut = leftOutText(survey, 'berth secrets import')
      throw new CommandError(`${this.directory} has no file to send. ${leftOut}`.trim())
    }
    const manifest = this.#reader.read(survey)
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

/** Prints what a push has led to. Returns the exit code. */
async function report(
  { context: { stdout, stderr } }: CliSession,
  client: Client,
  { response, project, phases, tookMs, isBack }: Outcome,
  { json }: PushOptions,
  signal: AbortSignal,
): Promise<number> {
  const { id, slug, url, init_phase: phase } = project
  const { written, removed, began } = response
  const hasChanged = written + removed > 0 && began === null
  const taken = hasChanged ? await takenChange(project, signal) : null
  if (json) {
    const app = taken && { app_status: taken.status }
    await printJson(stdout, { ...response, project, took_ms: tookMs, ...app })
  }
  if (taken?.isUp === false) {
    await printRecent(stderr, client, project)
    throw new CommandError(`${summary(response, phases, null)}. ${taken.text}`)
  }
  if (phase === 'failed') {
    if (json) await printLogEnd(stderr, projectLog(client, id))
    throw new CommandError(
      `${slug} could not be brought up; the log above says why. ${project.runtime_status === 'running' ? 'The version before goes on, with its files. ' : ''}Mend it and push again. The whole log: berth projects logs ${slug}`,
    )
  }
  if (phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  if (json) return 0
  const where = url === null ? `It is private: berth projects update ${slug} --public gives it a URL.` : url
  const done = isBack ? 'Back at the version that runs' : summary(response, phases, taken ? null : tookMs)
  const said = taken ? ` ${taken.text}` : ''
  await stdout.write(
    `${done}: ${printable(slug)} ${url === null ? 'runs. ' : 'at '}${where}${said && `.${said}`}\n`,
  )
  return 0
}

/**
 * Returns what was done: `3 files sent, 1 removed, installed and restarted in 210 ms`.
 *
 * @param tookMs null if it is not known when the app has taken it
 */
function summary(
  { written, removed, began }: PushResponse,
  phases: readonly string[],
  tookMs: number | null,
): string {
  const sent = [written > 0 ? `${count(written, 'file')} sent` : '', removed > 0 ? `${removed} removed` : '']
  const done = [
    phases.includes('install') ? 'installed' : '',
    phases.includes('build') ? 'built' : '',
    phases.includes('healthcheck') ? 'restarted' : '',
  ].filter(Boolean)
  const last = done.pop()
  const acts = last === undefined ? 'live' : [done.join(', '), last].filter(Boolean).join(' and ')
  if (written + removed === 0 && began === null) return 'Nothing has changed'
  const live = tookMs === null ? [] : [`${acts} in ${formatDuration(tookMs)}`]
  return [...sent.filter(Boolean), ...live].join(', ')
}
