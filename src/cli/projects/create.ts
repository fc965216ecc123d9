import { readFile, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { BODY_LIMIT } from '../../http/body.ts'
import type { Project, ProjectCreate } from '../../resources/projects/model.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Client } from '../client.ts'
import type { CommonOptions, Invocation } from '../command.ts'
import { FORM_OVERHEAD, inParts, packDirectory } from '../directory/pack.ts'
import { notesOn, sizeOf } from '../directory/report.ts'
import { checkDirectory, surveyDirectory } from '../directory/survey.ts'
import { SENT_PROJECTS } from '../directory-choices.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import { formatBytes, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { serverOrNew } from '../server-or-new.ts'
import type { CliSession } from '../session.ts'
import { parsePairs, readVariables, type Variables } from '../variables.ts'
import { followBringUp } from './follow.ts'
import { Pusher } from './pusher.ts'

/** The options of `berth projects create`. */
interface CreateOptions extends CommonOptions {
  server?: string | undefined
  name?: string | undefined
  description?: string | undefined
  public?: true | undefined
  private?: true | undefined
  ephemeral?: true | undefined
  worker?: true | undefined
  env?: string[] | undefined
  envFile?: string[] | undefined
  /** The app's own directory, relative to the code. */
  directory?: string | undefined
  detach?: true | undefined
  strict?: true | undefined
}

/**
 * Creates a project and follows its bring-up.
 *
 * @returns the exit code
 */
export async function createProject({
  session,
  args: [directory],
  options,
  connect,
  server,
  print,
}: Invocation<[directory: string | undefined], CreateOptions & SourceOptions>): Promise<number> {
  const { template, git, ref, archive, from } = options
  if (directory !== undefined && from !== undefined)
    throw new UsageError('Name the directory once: with --from or without.')
  const source = { template, git, ref, archive, from: from ?? directory }
  checkSource(source)
  if (source.from !== undefined) await checkDirectory(resolve(session.context.cwd, source.from))
  const variables = await variablesOf(options, session.context)
  const client = await connect()
  const serverId = await serverOrNew(client, session.context, options, server)
  const create = async (): Promise<Project> => {
    const { context } = session
    if (source.from !== undefined)
      return createFrom(session, client, serverId, source.from, options, variables)
    const code = await prepareCode(source, context)
    return post(client, serverId, bodyOf(options, code, variables), code.archive)
  }
  const created = await create()
  const { id, slug, init_phase } = created
  const { json, detach, strict } = options
  const head = createdText(created)
  if (init_phase !== null && !detach) {
    if (!json) await session.context.stdout.write(head)
    const from = source.from === undefined || source.from === '.' ? [] : [source.from]
    const remedy =
      source.from === undefined ? {} : { remedy: `berth projects push ${shellQuote(from)}`.trim() }
    return followBringUp(session, client, created, { json, since: created.created_at, strict, ...remedy })
  }
  const next =
    init_phase === null
      ? `It is blank. Put code into projects/${slug} on the server, then run: berth projects init ${id}\n`
      : `Its bring-up goes on. Look at it with: berth projects logs ${id} -f\n`
  await print(created, () => head + next)
  return 0
}

/** Keeps which project a directory was sent to. If that cannot be kept, says so and goes on. */
export async function rememberProject(
  context: ProcessContext,
  directory: string,
  { baseUrl }: Client,
  projectId: string,
): Promise<void> {
  const inDirectory = { ...context, cwd: directory }
  if (SENT_PROJECTS.find(inDirectory, baseUrl)?.id === projectId) return
  try {
    SENT_PROJECTS.keep(inDirectory, baseUrl, projectId)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    await context.stderr.write(`The project of ${printable(directory)} is not remembered. ${error.message}\n`)
  }
}

/**
 * Creates a project from a directory, whose bring-up begins with that. One that is too large for a request is sent in
 * parts.
 *
 * @param given the directory as a person names it
 * @throws CommandError if nothing can be sent, or not all
 */
export async function createFrom(
  session: CliSession,
  client: Client,
  serverId: string,
  given: string,
  options: CreateOptions,
  variables: Variables = {},
): Promise<Project> {
  const { context } = session
  const directory = resolve(context.cwd, given)
  const survey = await surveyDirectory(directory)
  const notes = notesOn(survey, '--env-file')
  const shown = printable(given)
  if (survey.files.length === 0) throw new CommandError(`${shown} has no file to send. ${notes}`.trim())
  const create = async (archive?: Uint8Array<ArrayBuffer>): Promise<Project> => {
    const code = { body: {}, ...(archive && { archive }), ...nameFromPath(directory) }
    const body = bodyOf(options, code, variables)
    const project = await post(client, serverId, body, archive)
    await rememberProject(context, directory, client, project.id)
    return project
  }
  const parts = inParts(survey).length
  if (parts === 1) {
    const archive = await packDirectory(survey)
    await context.stderr.write(
      `Packed ${shown}: ${sizeOf(survey)}; ${formatBytes(archive.length)} to send.\n${notes}`,
    )
    return create(archive)
  }
  await context.stderr.write(`Sending ${shown}: ${sizeOf(survey)}, in ${parts} parts.\n${notes}`)
  const { id, slug } = await create()
  const pusher = new Pusher(session, directory, id, { isQuiet: options.json ?? false })
  try {
    return (await pusher.send(client)).project
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw new CommandError(
      `${error.message} The project ${slug} has no code yet: "berth projects push" sends it, "berth projects delete ${slug}" removes it.`,
      error.exitCode,
      error.code,
    )
  }
}

/** Says what was created. */
export const createdText = ({ id, name, slug, server_id }: Project): string =>
  `Created ${id} (${printable(name)}, slug ${slug}) on ${server_id}.\n`

async function variablesOf(
  { env = [], envFile = [] }: CreateOptions,
  context: ProcessContext,
): Promise<Variables> {
  const given = parsePairs(env, '--env')
  const files = await Promise.all(envFile.map((file) => readVariables(file, context)))
  return Object.assign({}, ...files, given)
}

/** Returns the body of the request, without fields that are not given. */
function bodyOf(options: CreateOptions, code: ProjectCode, env: Variables): ProjectCreate {
  const name = options.name ?? code.name
  const { description } = options
  return {
    ...withDirectory(code, options.directory),
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(options.public ? { visibility: 'public' as const } : {}),
    ...(options.private ? { visibility: 'private' as const } : {}),
    ...(options.ephemeral ? { lifecycle: 'ephemeral' as const } : {}),
    ...(options.worker ? { kind: 'worker' as const } : {}),
    ...(Object.keys(env).length === 0 ? {} : { env }),
  }
}

/** Returns the fields that describe the code of a new project, with the app's own directory in it. */
function withDirectory(
  { body: { template, source }, archive }: ProjectCode,
  directory: string | undefined,
): Pick<ProjectCreate, 'template' | 'source'> {
  if (directory === undefined) return { ...(template && { template }), ...(source && { source }) }
  if (source !== undefined) return { source: { ...source, directory } }
  if (template !== undefined) return { source: { type: 'template', template, directory } }
  return { source: { type: archive === undefined ? 'blank' : 'archive', directory } }
}

function post(
  client: Client,
  server: string,
  body: ProjectCreate,
  archive: Uint8Array<ArrayBuffer> | undefined,
): Promise<Project> {
  const params = { serverId: server }
  if (archive === undefined) return client.call('projects.create', { params, body })
  const form = new FormData()
  for (const [name, value] of Object.entries(body))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  form.set('archive', new Blob([archive]), 'archive')
  return client.call('projects.create', { params, form })
}

/** The sources of a project's code. At most one may be given, and `ref` only with `git`. */
interface SourceOptions {
  template?: string | undefined
  git?: string | undefined
  ref?: string | undefined
  /** A file or a URL. */
  archive?: string | undefined
  /** A directory of this machine. */
  from?: string | undefined
}

/** The code of a new project. */
interface ProjectCode {
  /** Fields of the request that describe it. */
  body: Pick<ProjectCreate, 'template' | 'source'>
  /** Archive to send with the request. */
  archive?: Uint8Array<ArrayBuffer>
  /** Default name of the project. Without it the API chooses one. */
  name?: string
}

/** Largest number of characters of a project's name. */
const LONGEST_NAME = 100

/**
 * Checks the sources.
 *
 * @throws UsageError for more than one, or a ref without a repository
 */
function checkSource({ ref, ...sources }: SourceOptions): void {
  const given = Object.values(sources).filter((value) => value !== undefined)
  if (given.length > 1)
    throw new UsageError('Say where the code comes from once: a directory, --template, --git or --archive.')
  if (ref !== undefined && sources.git === undefined)
    throw new UsageError('--ref names a branch, a tag or a commit of the repository that --git gives.')
}

/**
 * Prepares the code to send, unless it is a directory: reads an archive.
 *
 * @throws CommandError if it cannot be read or is too large for a request
 */
async function prepareCode(options: SourceOptions, context: ProcessContext): Promise<ProjectCode> {
  const { template, git, ref, archive } = options
  if (template !== undefined) return { body: { template } }
  if (git !== undefined) {
    // A relative path is relative to the person's working directory.
    const url = /^\.\.?(?:\/|$)/.test(git) ? resolve(context.cwd, git) : git
    return {
      body: { source: { type: 'git', url, ...(ref === undefined ? {} : { ref }) } },
      ...nameFromPath(url),
    }
  }
  if (archive === undefined) return { body: {} }
  if (/^https?:\/\//i.test(archive)) {
    return { body: { source: { type: 'archive', url: archive } }, ...nameFromPath(new URL(archive).pathname) }
  }
  return { body: {}, archive: await readArchive(archive, context), ...nameFromPath(archive) }
}

async function readArchive(file: string, { cwd }: ProcessContext): Promise<Uint8Array<ArrayBuffer>> {
  const path = resolve(cwd, file)
  try {
    const { size } = await stat(path)
    if (size <= BODY_LIMIT - FORM_OVERHEAD) return await readFile(path)
  } catch (error) {
    throw unreadable(file, error)
  }
  throw new CommandError(
    `${file} is larger than the ${BODY_LIMIT / 1024 / 1024} MiB that a request may have. Put it where berth can fetch it, and give its URL.`,
  )
}

/** Returns the last part of a path or URL, without its extension. */
function nameFromPath(path: string): { name?: string } {
  const name = basename(path.replaceAll('\\', '/'))
    .replace(/\.(?:git|zip|tar|tgz|tar\.gz)$/i, '')
    .replaceAll(/\p{Cc}/gu, '')
    .slice(0, LONGEST_NAME)
  return name === '' ? {} : { name }
}
