import { UsageError } from '../../errors.ts'
import type { Server } from '../../resources/servers/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { choice, text } from '../options.ts'
import { type Column, count, printable, type Style } from '../output.ts'
import { type Candidate, call, factSheet, type Noun, rows } from '../runner.ts'

const TIERS = ['small', 'medium', 'large'] as const satisfies readonly Server['tier'][]
const REGIONS = ['us-east', 'us-west', 'eu-west'] as const satisfies readonly Server['region'][]

const STATUS_STYLES: Record<Server['status'], Style> = {
  running: 'green',
  building: 'yellow',
  sleeping: 'dim',
}

const COLUMNS: readonly Column<Server>[] = [
  { heading: 'ID', cell: (server) => server.id },
  { heading: 'TASK', cell: (server) => server.task },
  { heading: 'TIER', cell: (server) => server.tier },
  { heading: 'STATUS', cell: (server) => server.status, style: (server) => STATUS_STYLES[server.status] },
  { heading: 'REGION', cell: (server) => server.region },
  { heading: 'CREDITS', cell: (server) => server.creditsUsed.toFixed(2), right: true },
  { heading: 'STORAGE', cell: (server) => storage(server.storageUsedGb), right: true },
  { heading: 'CREATED', cell: (server) => server.createdAt ?? '' },
  { heading: 'URL', cell: (server) => server.publicUrl ?? '' },
]

const serverFacts = ({ server }: { server: Server }): [string, string][] => [
  ['ID', server.id],
  ['Task', server.task],
  ['Tier', server.tier],
  ['Status', server.status],
  ['Region', server.region],
  ['Credits', server.creditsUsed.toFixed(2)],
  ['Storage', storage(server.storageUsedGb)],
  ['URL', server.publicUrl ?? '–'],
  ['Created', server.createdAt ?? '–'],
]

const storage = (gigabytes: number): string =>
  gigabytes < 1 ? `${(gigabytes * 1000).toFixed(1)} MB` : `${gigabytes.toFixed(2)} GB`

const region = choice('REGION', 'us-east, us-west or eu-west', REGIONS)
const task = text('TEXT', 'a short label')

/** `berth servers` */
export const servers: Noun = {
  name: 'servers',
  summary: 'provision and manage servers',
  description: 'Provisions and manages servers. Plain "berth servers" lists them.',
  ids: [
    { placeholder: 'SERVER', list: listIds },
    { placeholder: 'SERVERS', isCommaSeparated: true, list: listIds },
  ],
  commands: [
    call('servers.list', {
      usage: 'list',
      description: 'list all servers, newest first',
      show: rows('servers', COLUMNS, 'No servers yet. Provision one with "berth servers create".\n'),
    }),
    call('servers.create', {
      usage: 'create',
      description: 'provision a server',
      options: { region, tier: choice('TIER', 'small, medium or large (default small)', TIERS), task },
      request: (_, { task, tier, region }) => ({ body: { task, tier, region } }),
      show: ({ id, tier, status }) => `Provisioned ${id} (${tier}, ${status}).\n`,
    }),
    call('servers.get', {
      usage: 'get <SERVER>',
      description: 'show one server',
      request: ([serverId]) => ({ params: { serverId } }),
      show: factSheet(serverFacts),
    }),
    call('servers.update', {
      usage: 'update <SERVER>',
      description: 'change its label or region',
      options: { region, task },
      request: ([serverId], { task, region }) => {
        if (task === undefined && region === undefined)
          throw new UsageError('Say what to change: --task or --region.')
        return { params: { serverId }, body: { task, region } }
      },
      show: factSheet(serverFacts),
    }),
    call('servers.delete', {
      usage: 'delete <SERVER>',
      description: 'delete a server with everything on it',
      request: ([serverId]) => ({ params: { serverId } }),
      show: ({ id }) => `Deleted ${id}.\n`,
    }),
    act('start', 'wake a sleeping server'),
    act('stop', 'end all its processes'),
    act('restart', 'stop, then start'),
  ],
}

async function listIds(client: Client, signal: AbortSignal): Promise<Candidate[]> {
  const { servers: all } = await client.call('servers.list', { signal })
  return all.map(({ id, task, status }) => ({ value: id, description: task ? `${status}, ${task}` : status }))
}

function act(action: 'start' | 'stop' | 'restart', description: string) {
  return call('servers.act', {
    usage: `${action} <SERVER>`,
    description,
    request: ([serverId]) => ({ params: { serverId }, body: { action } }),
    show: ({ id, status }) => `${id} is ${status}.\n`,
  })
}

/** Number of servers that a message lists. */
const NAMED = 5

/**
 * Returns the given server, else the only one.
 *
 * @param orElse another way to choose, for the message
 * @throws CommandError if there is none, or more than one
 */
export async function chooseServer(client: Client, given: string | undefined, orElse = ''): Promise<string> {
  if (given !== undefined) return given
  const { servers: all } = await client.call('servers.list')
  const [only, ...others] = all
  if (only === undefined)
    throw new CommandError('There is no server yet. Provision one with "berth servers create".')
  if (others.length === 0) return only.id
  const named = all.slice(0, NAMED).map(({ id, task }) => (task ? `${id} (${printable(task)})` : id))
  throw new CommandError(
    `There are ${count(all.length, 'server')}: ${named.join(', ')}${all.length > NAMED ? ', …' : ''}. Say which one is meant with --server ID${orElse}.`,
  )
}
