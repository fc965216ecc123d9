import { UsageError } from '../../errors.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import { call, type Invocation, type Noun, rows } from '../command.ts'
import { type NameWords, namedBy } from '../names.ts'
import { flag, parsed } from '../options.ts'
import { count, paint, printable } from '../output.ts'
import type { Column } from '../table.ts'

const COLUMNS: readonly Column<ApiKey>[] = [
  { heading: 'ID', cell: (key) => key.id },
  { heading: 'LABEL', cell: (key) => key.label, elastic: true },
  { heading: 'KEY', cell: (key) => key.masked },
  { heading: 'LAST USED', cell: (key) => key.last_used_at ?? 'never', minor: 1 },
  { heading: 'CREATED', cell: (key) => key.created_at, minor: 4 },
  { heading: 'SERVERS', cell: (key) => scopeCell(key.allowed_server_ids), minor: 2 },
  { heading: 'PROJECTS', cell: (key) => scopeCell(key.allowed_project_ids), minor: 3 },
]

const scopeCell = (ids: readonly string[]): string => (ids.length === 0 ? 'all' : ids.join(' '))

const scope = {
  servers: parsed('SERVERS', 'the servers that it reaches, with commas between', idsOf),
  projects: parsed('PROJECTS', 'the projects that it reaches, with commas between', idsOf),
}

/** Parses a list of ids. Refuses an empty one, which the API would read as no limit. */
function idsOf(given: string): string[] {
  const ids = given.split(',').map((id) => id.trim())
  if (ids.some((id) => id === ''))
    throw new UsageError(`Expected ids with commas between, got ${JSON.stringify(given)}.`)
  return ids
}

/** Returns the fields of a scope, with the ids of what is named. */
const scopeOf = async (
  servers: string[] | undefined,
  projects: string[] | undefined,
  idOf: Invocation<unknown, unknown>['idOf'],
) => ({
  allowed_server_ids: await idOf('SERVERS', servers),
  allowed_project_ids: await idOf('PROJECTS', projects),
})

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

const WORDS: NameWords = {
  one: 'key',
  by: ['label'],
  listedBy: 'berth keys',
  none: 'Make one with "berth keys create LABEL".',
}

/** `berth keys` */
export const keysNoun: Noun = {
  name: 'keys',
  summary: 'create and manage API keys',
  description: 'Creates and manages API keys. Plain "berth keys" lists them.',
  names: [
    {
      placeholder: 'KEY_ID',
      words: WORDS,
      list: namedBy('label', async (client, signal) => (await client.call('keys.list', { signal })).keys),
    },
  ],
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
      request: async ([label], { servers, projects }, { idOf }) => ({
        body: { label, ...(await scopeOf(servers, projects, idOf)) },
      }),
      show: (created, { out }) =>
        `Created ${created.id} (${printable(created.label)}, ${scopeText(created)}):

  ${paint(out, 'bold', created.key)}

Commands take it from BERTH_API_KEY. Keep it: only /access in the browser shows it again (berth open, or berth open --print).
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
      request: async ([named], { servers, projects, all }, { idOf }) => {
        if ((servers !== undefined || projects !== undefined) === Boolean(all))
          throw new UsageError('Say what the key reaches: either --servers and --projects, or --all.')
        return {
          params: { keyId: await idOf('KEY_ID', named) },
          body: await scopeOf(servers, projects, idOf),
        }
      },
      show: (key) => `${key.id} is ${scopeText(key)}.\n`,
    }),
    call('keys.delete', {
      usage: 'delete <KEY_ID>',
      description: 'end a key at once',
      request: async ([named], _, { idOf }) => ({ params: { keyId: await idOf('KEY_ID', named) } }),
      show: ({ id }) => `Deleted ${id}.\n`,
    }),
  ],
}
