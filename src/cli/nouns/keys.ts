import { UsageError } from '../../errors.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { Client } from '../client.ts'
import { flag, parsed } from '../options.ts'
import { type Column, count, paint, printable } from '../output.ts'
import { type Candidate, call, type Noun, rows } from '../runner.ts'

const COLUMNS: readonly Column<ApiKey>[] = [
  { heading: 'ID', cell: (key) => key.id },
  { heading: 'LABEL', cell: (key) => key.label },
  { heading: 'KEY', cell: (key) => key.masked },
  { heading: 'LAST USED', cell: (key) => key.last_used_at ?? 'never' },
  { heading: 'CREATED', cell: (key) => key.created_at },
  { heading: 'SERVERS', cell: (key) => scopeCell(key.allowed_server_ids) },
  { heading: 'PROJECTS', cell: (key) => scopeCell(key.allowed_project_ids) },
]

const scopeCell = (ids: readonly string[]): string => (ids.length === 0 ? 'all' : ids.join(' '))

const scope = {
  servers: parsed('SERVERS', 'ids of the servers that it reaches, with commas between', idsOf),
  projects: parsed('PROJECTS', 'ids of the projects that it reaches, with commas between', idsOf),
}

/** Parses a list of ids. Refuses an empty one, which the API would read as no limit. */
function idsOf(given: string): string[] {
  const ids = given.split(',').map((id) => id.trim())
  if (ids.some((id) => id === ''))
    throw new UsageError(`Expected ids with commas between, got ${JSON.stringify(given)}.`)
  return ids
}

/** Returns the scope of a key: `account-wide`, `limited to 1 server and 2 projects`. */
function scopeText({
  allowed_server_ids: servers = [],
  allowed_project_ids: projects = [],
}: {
  allowed_server_ids?: readonly string[]
  allowed_project_ids?: readonly string[]
}): string {
  const parts = [
    servers.length > 0 ? count(servers.length, 'server') : '',
    projects.length > 0 ? count(projects.length, 'project') : '',
  ].filter(Boolean)
  return parts.length === 0 ? 'account-wide' : `limited to ${parts.join(' and ')}`
}

/** `berth keys` */
export const keys: Noun = {
  name: 'keys',
  summary: 'create and manage API keys',
  description: 'Creates and manages API keys. Plain "berth keys" lists them.',
  ids: [{ placeholder: 'KEY_ID', list: listIds }],
  commands: [
    call('keys.list', {
      usage: 'list',
      description: 'list all keys, newest first',
      show: rows('keys', COLUMNS),
    }),
    call('keys.create', {
      usage: 'create <LABEL>',
      description: 'create a key and print it, this once',
      options: scope,
      help: '\nWithout --servers and --projects the key reaches the whole account.\n',
      request: ([label], { servers, projects }) => ({
        body: { label, allowed_server_ids: servers, allowed_project_ids: projects },
      }),
      show: (created, { out }) =>
        `Created ${created.id} (${printable(created.label)}, ${scopeText(created)}):

  ${paint(out, 'bold', created.key)}

Commands take it from BERTH_API_KEY. Keep it: only /access in the browser shows it again (berth open).
`,
    }),
    call('keys.update', {
      usage: 'update <KEY_ID>',
      description: 'replace what a key reaches',
      options: { ...scope, all: flag('reach the whole account') },
      help: `
The new scope replaces the one of before: without --servers the key reaches all servers, without --projects
all projects. A scoped key can neither provision servers nor manage keys.

Examples:
  berth keys update key_… --servers srv_…,srv_…
  berth keys update key_… --all
`,
      request: ([keyId], { servers, projects, all }) => {
        if ((servers !== undefined || projects !== undefined) === Boolean(all))
          throw new UsageError('Say what the key reaches: either --servers and --projects, or --all.')
        return { params: { keyId }, body: { allowed_server_ids: servers, allowed_project_ids: projects } }
      },
      show: (key) => `${key.id} is ${scopeText(key)}.\n`,
    }),
    call('keys.delete', {
      usage: 'delete <KEY_ID>',
      description: 'end a key at once',
      request: ([keyId]) => ({ params: { keyId } }),
      show: ({ id }) => `Deleted ${id}.\n`,
    }),
  ],
}

async function listIds(client: Client, signal: AbortSignal): Promise<Candidate[]> {
  const { keys: all } = await client.call('keys.list', { signal })
  return all.map(({ id, label }) => ({ value: id, description: label }))
}
