import { UsageError } from '../../errors.ts'
import type { Project, ProjectCreate } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { chooseServer } from '../nouns/servers.ts'
import { printable } from '../output.ts'
import type { CommonOptions, Invocation } from '../runner.ts'
import type { Terminal } from '../terminal.ts'
import { parsePairs, readVariables, type Variables } from '../variables.ts'
import { followBringUp } from './follow.ts'
import { checkSource, type ProjectCode, prepareCode, type SourceOptions } from './source.ts'

/** The options of `berth projects create`. */
interface CreateOptions extends CommonOptions {
  server?: string | undefined
  name?: string | undefined
  description?: string | undefined
  public?: true | undefined
  private?: true | undefined
  ephemeral?: true | undefined
  env?: string[] | undefined
  envFile?: string[] | undefined
  detach?: true | undefined
}

/**
 * Makes a project and follows its bring-up.
 *
 * @returns the exit code
 */
export async function createProject({
  session,
  args: [directory],
  options,
  connect,
  print,
}: Invocation<[directory: string | undefined], CreateOptions & SourceOptions>): Promise<number> {
  const { template, git, ref, archive, from } = options
  if (directory !== undefined && from !== undefined)
    throw new UsageError('Name the directory once: with --from or without.')
  const source = { template, git, ref, archive, from: from ?? directory }
  checkSource(source)
  const variables = await variablesOf(options, session.terminal)
  const client = await connect()
  const server = await chooseServer(client, options.server)
  const code = await prepareCode(source, session.terminal)
  const created = await post(client, server, bodyOf(options, code, variables), code.archive)
  const { id, slug, name, server_id, init_phase } = created
  const { json, detach } = options
  const head = `Created ${id} (${printable(name)}, slug ${slug}) on ${server_id}.\n`
  if (init_phase !== null && !detach) {
    if (!json) await session.terminal.stdout.write(head)
    return followBringUp(session, client, created, { json, since: created.created_at })
  }
  const next =
    init_phase === null
      ? `It is blank. Put code into projects/${slug} on the server, then run: berth projects init ${id}\n`
      : `Its bring-up goes on. Look at it with: berth projects logs ${id} -f\n`
  await print(created, () => head + next)
  return 0
}

async function variablesOf(
  { env = [], envFile = [] }: CreateOptions,
  terminal: Terminal,
): Promise<Variables> {
  const given = parsePairs(env, '--env')
  const files = await Promise.all(envFile.map((file) => readVariables(file, terminal)))
  return Object.assign({}, ...files, given)
}

/** Returns the body of the request, without what is not given. */
function bodyOf(options: CreateOptions, code: ProjectCode, env: Variables): ProjectCreate {
  const name = options.name ?? code.name
  const { description } = options
  return {
    ...code.body,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(options.public ? { visibility: 'public' as const } : {}),
    ...(options.private ? { visibility: 'private' as const } : {}),
    ...(options.ephemeral ? { lifecycle: 'ephemeral' as const } : {}),
    ...(Object.keys(env).length === 0 ? {} : { env }),
  }
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
