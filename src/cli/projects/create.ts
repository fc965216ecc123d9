import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Project, ProjectCreate } from '../../resources/projects/model.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Client } from '../client.ts'
import type { CommonOptions, Invocation } from '../command.ts'
import { inParts, packDirectory } from '../directory/pack.ts'
import { notesOn, sizeText } from '../directory/report.ts'
import { checkReadableDirectory, surveyDirectory } from '../directory/survey.ts'
import { SENT_PROJECTS } from '../directory-choices.ts'
import { CommandError } from '../errors.ts'
import { formatBytes, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { serverOrNew } from '../server-or-new.ts'
import type { CliSession } from '../session.ts'
import { parsePairs, readVariables, type VariableValues } from '../variables.ts'
import { followBringUp } from './follow.ts'
import { Pusher } from './pusher.ts'
import {
  type CodeToSend,
  checkSourceOptions,
  nameFromPath,
  prepareCode,
  requestWith,
  type SourceOptions,
  withDirectory,
} from './sources.ts'

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
  checkSourceOptions(source)
  if (source.from !== undefined) await checkReadableDirectory(resolve(session.context.cwd, source.from))
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
  variables: VariableValues = {},
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
      `Packed ${shown}: ${sizeText(survey)}; ${formatBytes(archive.length)} to send.\n${notes}`,
    )
    return create(archive)
  }
  await context.stderr.write(`Sending ${shown}: ${sizeText(survey)}, in ${parts} parts.\n${notes}`)
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
): Promise<VariableValues> {
  const given = parsePairs(env, '--env')
  const files = await Promise.all(envFile.map((file) => readVariables(file, context)))
  return Object.assign({}, ...files, given)
}

/** Returns the body of the request, without fields that are not given. */
function bodyOf(options: CreateOptions, code: CodeToSend, env: VariableValues): ProjectCreate {
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

const post = (
  client: Client,
  serverId: string,
  body: ProjectCreate,
  archive: Uint8Array<ArrayBuffer> | undefined,
): Promise<Project> => client.call('projects.create', { params: { serverId }, ...requestWith(body, archive) })
