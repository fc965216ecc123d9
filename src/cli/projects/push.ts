import { basename, resolve } from 'node:path'
import type { Project } from '../../resources/projects/model.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Client } from '../client.ts'
import type { CommonOptions, Invocation } from '../command.ts'
import { interruptedText } from '../directory/outgoing.ts'
import { sentText } from '../directory/report.ts'
import { sendOnChange } from '../directory/watch.ts'
import { SENT_PROJECTS } from '../directory-choices.ts'
import { CommandError } from '../errors.ts'
import { followWork } from '../follow.ts'
import { count, formatDuration, printable, printResult, timeOfDay } from '../output.ts'
import { serverOrNew } from '../server-or-new.ts'
import type { CliSession } from '../session.ts'
import { createdText, createFrom, rememberProject } from './create.ts'
import { AWAITS_SECRETS, bringUpError, followBringUp } from './follow.ts'
import { Pusher, type PushOutcome } from './pusher.ts'
import { isWorker, missingVariablesText, projectAddresses, reportWarnings } from './report.ts'
import { printRecent, takenChange } from './watched-app.ts'

/** The options of `berth projects push`. */
interface PushOptions extends CommonOptions {
  project?: string | undefined
  server?: string | undefined
  name?: string | undefined
  private?: true | undefined
  /** The app's own directory, relative to the code. */
  directory?: string | undefined
  watch?: true | undefined
  strict?: true | undefined
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
  const { session, args, options, connect, reconnect, server } = invocation
  const client = await connect()
  const named = options.project === undefined ? null : await find(client, options.project)
  const { directory, project } = await findTarget(session, client, args[0], named)
  if (project === null) {
    await refuseTakenName(client, options.name ?? basename(directory))
    const create = { ...options, public: options.private ? undefined : (true as const) }
    const serverId = await serverOrNew(client, session.context, options, server)
    const created = await createFrom(session, client, serverId, directory, create)
    const { json, strict } = options
    if (!json) await session.context.stdout.write(createdText(created))
    const exitCode = await followBringUp(session, client, created, {
      ...{ json, strict },
      since: created.created_at,
      remedy: pushCommand(args[0]),
    }).catch((error: unknown) => {
      // The watch reports that it failed, and waits for the change that fixes it.
      if (!options.watch || !(error instanceof CommandError) || error.code !== undefined) throw error
      return error.exitCode
    })
    if (!options.watch || exitCode > 128) return exitCode
    return watchAndPush(session, { client, reconnect }, directory, created, options)
  }
  await rememberProject(session.context, directory, client, project.id)
  if (options.watch) return watchAndPush(session, { client, reconnect }, directory, project, options)
  const pusher = pusherFor(session, directory, project, options)
  return followWork(
    session.context.stderr,
    () => interruptedPush(pusher, project),
    async (signal) => report(session, client, await pusher.push(client, signal), options, signal),
  )
}

const pusherFor = (session: CliSession, directory: string, { id }: Project, options: PushOptions): Pusher =>
  new Pusher(session, directory, id, {
    isQuiet: options.json ?? false,
    ...(options.directory === undefined ? {} : { appDirectory: options.directory }),
  })

/** Returns the command that pushes the same directory again. */
const pushCommand = (directory = '.'): string =>
  directory === '.' ? 'berth projects push' : `berth projects push ${shellQuote([directory])}`

/** Says what becomes of a push that Ctrl-C has ended. */
const interruptedPush = ({ directory: { stage } }: Pusher, { slug }: Project): string =>
  interruptedText(stage, `the bring-up of ${slug}`, `berth projects logs ${slug} -f`)

/** Returns the directory to send, and its project; null if it has none yet. */
async function findTarget(
  { context }: CliSession,
  client: Client,
  given: string | undefined,
  named: Project | null,
): Promise<{ directory: string; project: Project | null }> {
  const wanted = resolve(context.cwd, given ?? '.')
  if (named !== null) return { directory: wanted, project: named }
  const { projects } = await client.call('projects.listAll')
  const isThere = (given: string): boolean => projects.some(({ id }) => id === given)
  const sent = SENT_PROJECTS.find({ ...context, cwd: wanted }, client.baseUrl, isThere)
  // A directory that is named is meant itself, not the one above that was sent.
  if (sent === null || (given !== undefined && sent.directory !== wanted))
    return { directory: wanted, project: null }
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

/** Pushes, and again after each change, until Ctrl-C. It prints a failure, and tries again at the next change. */
async function watchAndPush(
  session: CliSession,
  connection: { client: Client; reconnect: () => Promise<Client> },
  directory: string,
  project: Project,
  options: PushOptions,
): Promise<number> {
  const { stderr } = session.context
  const pusher = pusherFor(session, directory, project, options)
  const exitCode = await sendOnChange({
    ...connection,
    directory,
    isLeftOut: pusher.directory.isLeftOut,
    target: { type: 'project', id: project.id },
    stderr,
    async send(client, signal, isFirst) {
      const outcome = await pusher.push(client, signal)
      const { written, removed, began } = outcome.response
      const isOfNote = outcome.isBack || written + removed > 0 || began !== null || outcome.phases.length > 0
      if (isFirst || isOfNote) await report(session, client, outcome, { ...options, isWatched: true }, signal)
    },
  })
  const said = interruptedPush(pusher, project)
  if (exitCode > 128 && said !== '') await stderr.write(`\nberth: ${said}`)
  return exitCode
}

/** Prints what a push has led to. Returns the exit code. */
async function report(
  { context: { stdout, stderr } }: CliSession,
  client: Client,
  outcome: PushOutcome,
  { json, strict, isWatched = false }: PushOptions & { isWatched?: boolean },
  signal: AbortSignal,
): Promise<number> {
  const { response, project, tookMs } = outcome
  const { init_phase: phase } = project
  const { written, removed, began } = response
  const hasChanged = written + removed > 0 && began === null
  const taken = hasChanged ? await takenChange(project, signal) : null
  const app = taken && { app_status: taken.status }
  const isUp = taken?.isUp !== false && phase !== 'failed' && phase !== 'awaiting_secrets'
  await printResult(stdout, json, { ...response, project, took_ms: tookMs, ...app }, () =>
    isUp ? liveText(client, outcome, taken?.text ?? null, isWatched) : '',
  )
  if (taken?.isUp === false) {
    await printRecent(stderr, client, project)
    throw new CommandError(`${summary(outcome, null, isWatched)}. ${taken.text}`)
  }
  if (phase === 'failed') {
    const goesOn = project.runtime_status === 'running' ? 'The version before goes on, with its files. ' : ''
    const next = `${goesOn}Fix it and push again. `
    throw await bringUpError(stderr, client, project, { next, isLogShown: !json })
  }
  if (phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  return reportWarnings(stderr, project.warnings, { isShown: !json && began !== null, strict })
}

/**
 * Returns that the version runs that was pushed.
 *
 * @param said what has become of the app that has taken the change by itself, a sentence; null if it did not
 */
function liveText(client: Client, outcome: PushOutcome, said: string | null, isWatched: boolean): string {
  const { project, tookMs, isBack } = outcome
  const { slug, url } = project
  const where = isWorker(project)
    ? 'It is a worker, which has no URL.'
    : url === null
      ? `It is private: berth projects update ${slug} --public gives it a URL.`
      : isWatched
        ? url
        : projectAddresses(client, project)
  const done = isBack
    ? 'Back at the version that runs'
    : summary(outcome, said === null ? tookMs : null, isWatched)
  const at = isWatched ? `${timeOfDay()}  ` : ''
  return `${at}${done}: ${printable(slug)} ${url === null ? 'runs. ' : 'at '}${where}${said === null ? '' : `. ${said}`}\n`
}

/**
 * Returns what was done: `3 files sent, 1 removed, installed and restarted in 210 ms`.
 *
 * @param tookMs null if it is not known when the app has taken it
 * @param isNamed whether to name the files
 */
function summary(
  { response: { written, removed, began }, sent: paths, phases }: PushOutcome,
  tookMs: number | null,
  isNamed: boolean,
): string {
  const sentFiles = isNamed && paths.length > 0 ? sentText(paths) : `${count(written, 'file')} sent`
  const sent = [written > 0 ? sentFiles : '', removed > 0 ? `${removed} removed` : '']
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
