import { UsageError } from '../../errors.ts'
import type { Project, ProjectCreate } from '../../resources/projects/model.ts'
import { chooseServer } from '../choose-server.ts'
import type { Client } from '../client.ts'
import type { ConnectionOptions } from '../instance.ts'
import { printable } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { parsePairs, readVariables, type Variables } from '../variables.ts'
import { followBringUp } from './follow.ts'
import { checkSource, type ProjectCode, prepareCode, type SourceOptions } from './source.ts'

/** Options of `berth projects create`. */
export interface CreateOptions extends ConnectionOptions, SourceOptions {
  json?: boolean
  server?: string
  name?: string
  description?: string
  public?: boolean
  private?: boolean
  ephemeral?: boolean
  env?: string[]
  envFile?: string[]
  detach?: boolean
}

/**
 * Makes a project and follows its bring-up.
 *
 * @param folder the same as `--from`
 * @returns the exit code
 */
export async function createProject(
  session: Session,
  folder: string | undefined,
  { from, ...options }: CreateOptions,
): Promise<number> {
  if (folder !== undefined && from !== undefined)
    throw new UsageError('Name the folder once: with --from or without.')
  const { template, git, ref, archive } = options
  const source = { template, git, ref, archive, from: from ?? folder }
  checkSource(source as SourceOptions)
  const variables = await variablesOf(options, session.terminal)
  const client = await connect(session, options)
  const server = await chooseServer(client, options.server)
  const code = await prepareCode(source as SourceOptions, session.terminal)
  const created = await post(client, server, wishesOf(options, code, variables), code.archive)
  return tell(session, client, created, options)
}

async function variablesOf(
  { env = [], envFile = [] }: CreateOptions,
  terminal: Terminal,
): Promise<Variables> {
  const given = parsePairs(env, '--env')
  const files = await Promise.all(envFile.map((file) => readVariables(file, terminal)))
  return Object.assign({}, ...files, given)
}

function wishesOf(options: CreateOptions, code: ProjectCode, env: Variables): ProjectCreate {
  const name = options.name ?? code.name
  const { description } = options
  return {
    ...code.wishes,
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
  wishes: ProjectCreate,
  archive: Uint8Array<ArrayBuffer> | undefined,
): Promise<Project> {
  const target = path`/servers/${server}/projects`
  if (archive === undefined) return client.request<Project>('POST', target, { body: wishes })
  const form = new FormData()
  for (const [name, value] of Object.entries(wishes))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  form.set('archive', new Blob([archive]), 'archive')
  return client.request<Project>('POST', target, { form })
}

async function tell(
  session: Session,
  client: Client,
  created: Project,
  options: CreateOptions,
): Promise<number> {
  const { json, detach } = options
  const { stdout } = session.terminal
  const { id, slug, name, server_id, init_phase } = created
  const hasCode = init_phase !== null
  if (json && (detach || !hasCode)) return printJson(session, created).then(() => 0)
  if (!json) await stdout.write(`Created ${id} (${printable(name)}, slug ${slug}) on ${server_id}.\n`)
  if (hasCode && !detach) return followBringUp(session, client, created, { json, since: created.created_at })
  await stdout.write(
    hasCode
      ? `Its bring-up goes on. Look at it with: berth projects logs ${id} -f\n`
      : `It is blank. Put code into projects/${slug} on the server, then run: berth projects init ${id}\n`,
  )
  return 0
}
