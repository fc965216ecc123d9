import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { ApiKey, ApiKeyScope, CreatedApiKey } from '../../resources/keys/model.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, paint, printable, table } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  servers?: string[]
  projects?: string[]
  all?: boolean
}

const COLUMNS: Column<ApiKey>[] = [
  { heading: 'ID', cell: (key) => key.id },
  { heading: 'LABEL', cell: (key) => key.label },
  { heading: 'KEY', cell: (key) => key.masked },
  { heading: 'LAST USED', cell: (key) => key.last_used_at ?? 'never' },
  { heading: 'CREATED', cell: (key) => key.created_at },
  { heading: 'SERVERS', cell: (key) => reach(key.allowed_server_ids) },
  { heading: 'PROJECTS', cell: (key) => reach(key.allowed_project_ids) },
]

const MORE_UPDATE = `
The new scope replaces the one of before: without --servers the key reaches all servers, without --projects
all projects. A scoped key can neither provision servers nor manage keys.

Examples:
  berth keys update key_… --servers srv_…,srv_…
  berth keys update key_… --all
`

/** Adds `keys` and what can be done with them. */
export function registerKeys(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const keys = program
    .command('keys')
    .helpCommand(false)
    .summary('create and manage API keys')
    .description('Creates and manages API keys. Plain "berth keys" lists them.')
  const add = (usage: string, description: string) =>
    withConnection(withJson(keys.command(usage).description(description)))

  add('list', 'list all keys, newest first').action(async (options: Options) => {
    const client = await connect(session, options)
    const answer = await client.request<{ keys: ApiKey[] }>('GET', '/keys')
    if (options.json) return printJson(session, answer)
    await stdout.write(table(stdout, COLUMNS, answer.keys))
  })

  withScope(add('create <LABEL>', 'create a key and print it, this once'))
    .addHelpText('after', '\nWithout --servers and --projects the key reaches the whole account.\n')
    .action(async (label: string, options: Options) => {
      const client = await connect(session, options)
      const created = await client.request<CreatedApiKey>('POST', '/keys', {
        body: { label, ...scopeOf(options) },
      })
      if (options.json) return printJson(session, created)
      await stdout.write(`Created ${created.id} (${printable(created.label)}, ${describe(created)}):\n\n`)
      await stdout.write(`  ${paint(stdout, 'bold', created.key)}\n\n`)
      await stdout.write(
        'Commands take it from BERTH_API_KEY. Keep it: only /access in the browser shows it again (berth open).\n',
      )
    })

  withScope(add('update <KEY_ID>', 'replace what a key reaches'))
    .option('--all', 'reach the whole account')
    .addHelpText('after', MORE_UPDATE)
    .action(async (id: string, options: Options) => {
      const limited = options.servers !== undefined || options.projects !== undefined
      if (limited === Boolean(options.all))
        throw new UsageError('Say what the key reaches: either --servers and --projects, or --all.')
      const client = await connect(session, options)
      const answer = await client.request<Required<ApiKeyScope>>('PATCH', path`/keys/${id}`, {
        body: scopeOf(options),
      })
      if (options.json) return printJson(session, answer)
      await stdout.write(`${answer.id} is ${describe(answer)}.\n`)
    })

  add('delete <KEY_ID>', 'end a key at once')
    .alias('rm')
    .action(async (id: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<{ id: string }>('DELETE', path`/keys/${id}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${answer.id}.\n`)
    })
}

const withScope = (command: Command): Command =>
  command
    .option('--servers <SERVERS>', 'ids of the servers that it reaches, with commas between', listOf)
    .option('--projects <PROJECTS>', 'ids of the projects that it reaches, with commas between', listOf)

/** An empty list would silently mean everything. */
function listOf(given: string): string[] {
  const ids = given.split(',').map((id) => id.trim())
  if (ids.some((id) => id === ''))
    throw new UsageError(`Expected ids with commas between, got ${JSON.stringify(given)}.`)
  return ids
}

const scopeOf = ({ servers, projects }: Options) => ({
  ...(servers ? { allowed_server_ids: servers } : {}),
  ...(projects ? { allowed_project_ids: projects } : {}),
})

const reach = (ids: readonly string[]): string => (ids.length === 0 ? 'all' : ids.join(' '))

function describe({
  allowed_server_ids: servers,
  allowed_project_ids: projects,
}: Pick<ApiKey, 'allowed_server_ids' | 'allowed_project_ids'>): string {
  const parts = [count(servers.length, 'server'), count(projects.length, 'project')].filter(Boolean)
  return parts.length === 0 ? 'account-wide' : `limited to ${parts.join(' and ')}`
}

const count = (number: number, noun: string): string =>
  number === 0 ? '' : `${number} ${noun}${number === 1 ? '' : 's'}`
