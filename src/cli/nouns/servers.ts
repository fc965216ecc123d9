import { OUTBOUND_MODES } from '../../config/values.ts'
import { UsageError } from '../../errors.ts'
import type { Server } from '../../resources/servers/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { action, call, factSheet, type Noun, rows, type ShowContext } from '../command.ts'
import type { Named, NameWords } from '../names.ts'
import { choiceOption, flag, repeatedOption, textOption } from '../options.ts'
import { count, facts, printable, type Style } from '../output.ts'
import { showWhile } from '../status-line.ts'
import type { Column } from '../table.ts'
import { exportServer, importServer, moveServer, recoverServer } from './server-transfers.ts'

const TIERS = ['small', 'medium', 'large'] as const satisfies readonly Server['tier'][]
const WORDS: NameWords = {
  one: 'server',
  by: ['label'],
  listedBy: 'berth servers',
  none: 'Provision one with "berth servers create".',
}

const REGIONS = ['us-east', 'us-west', 'eu-west'] as const satisfies readonly Server['region'][]

const STATUS_STYLES: Record<Server['status'], Style> = {
  running: 'green',
  building: 'yellow',
  sleeping: 'dim',
}

/** A server in the list. */
interface ListedServer extends Server {
  /** ISO 8601; null if it was not used yet. */
  readonly lastUsedAt: string | null
  readonly isUnreachable: boolean
}

const COLUMNS: readonly Column<ListedServer>[] = [
  { heading: 'ID', cell: (server) => server.id },
  { heading: 'LABEL', cell: (server) => server.task, elastic: true },
  { heading: 'TIER', cell: (server) => server.tier, minor: 2 },
  {
    heading: 'STATUS',
    cell: ({ status, isUnreachable }) => (isUnreachable ? 'unreachable' : status),
    style: ({ status, isUnreachable }) => (isUnreachable ? 'red' : STATUS_STYLES[status]),
  },
  { heading: 'REGION', cell: (server) => server.region, minor: 5 },
  { heading: 'CREDITS', cell: (server) => server.creditsUsed.toFixed(2), right: true, minor: 4 },
  { heading: 'STORAGE', cell: (server) => storage(server.storageUsedGb), right: true, minor: 3 },
  { heading: 'CREATED', cell: (server) => server.createdAt ?? '', minor: 1 },
  { heading: 'LAST USED', cell: (server) => server.lastUsedAt ?? 'never', minor: 4 },
  { heading: 'URL', cell: (server) => server.publicUrl ?? '' },
]

const SERVER_ROWS = rows('servers', COLUMNS, 'No servers yet. Provision one with "berth servers create".\n')

/** Returns when each server was last used, and whether it is reached, by id. */
async function usesOf(client: Client): Promise<Map<string, Omit<ListedServer, keyof Server>>> {
  const { servers: used } = await client.call('usage.servers', { query: { quick: 'true' } })
  return new Map(
    used.map(({ server_id, last_used_at, unreachable }) => [
      server_id,
      { lastUsedAt: last_used_at, isUnreachable: Boolean(unreachable) },
    ]),
  )
}

const serverFacts = ({
  server,
  unreachable = null,
}: {
  server: Server
  unreachable?: string | null
}): [string, string][] => [
  ['ID', server.id],
  ['Label', server.task],
  ['Tier', server.tier],
  ['Status', unreachable === null ? server.status : `unreachable: ${printable(unreachable)}`],
  ['Region', server.region],
  ['Credits', server.creditsUsed.toFixed(2)],
  ['Storage', storage(server.storageUsedGb)],
  ['URL', server.publicUrl ?? '–'],
  ['Created', server.createdAt ?? '–'],
]

const storage = (gigabytes: number): string =>
  gigabytes < 1 ? `${(gigabytes * 1000).toFixed(1)} MB` : `${gigabytes.toFixed(2)} GB`

const region = choiceOption('REGION', 'us-east, us-west or eu-west', REGIONS)
const task = textOption('TEXT', 'a short label')

/** `berth servers` */
export const serversNoun: Noun = {
  name: 'servers',
  summary: 'provision and manage servers',
  description: 'Provisions and manages servers. Plain "berth servers" lists them.',
  names: [
    { placeholder: 'SERVER', words: WORDS, list: listNamed },
    // Of `berth use`, where nothing is meant if none is named.
    { placeholder: 'CHOICE', words: WORDS, list: listNamed },
    { placeholder: 'SERVERS', isCommaSeparated: true, words: WORDS, list: listNamed },
  ],
  commands: [
    call('servers.list', {
      usage: 'list',
      description: 'list all servers, newest first',
      async show({ servers: all }, context) {
        const uses = all.length === 0 || context.layout.quiet ? null : await usesOf(await context.connect())
        const unknown = { lastUsedAt: null, isUnreachable: false }
        const listed = all.map((server) => ({ ...server, ...(uses?.get(server.id) ?? unknown) }))
        return SERVER_ROWS({ servers: listed }, context)
      },
    }),
    call('servers.create', {
      hints: { 'unknown option': 'A label is an argument: berth servers create LABEL\n' },
      usage: 'create [LABEL]',
      description: 'provision a server',
      arguments: { LABEL: { description: 'what it is called, the same as --task' } },
      options: {
        region,
        tier: choiceOption('TIER', 'small, medium or large (default small)', TIERS),
        task,
        image: textOption('IMAGE', 'image of a server on an engine'),
        root: flag('run its commands as root of its container'),
      },
      request([label], { task = label, tier, region, image, root }) {
        if (label !== undefined && task !== label)
          throw new UsageError('Name the server once: with LABEL or with --task.')
        checkLabel(task)
        const query = {
          ...(image !== undefined && { image }),
          ...(root === true && { root: 'true' as const }),
        }
        return { body: { task, tier, region }, query }
      },
      id: ({ id }) => id,
      show: async ({ id, tier, status }, { connect }) =>
        `Provisioned ${id} (${tier}, ${status}).\n${await labelWarning(await connect(), id)}`,
    }),
    call('servers.get', {
      usage: 'get [SERVER]',
      description: 'show one server',
      request: async (_, __, { server }) => ({ params: { serverId: await server() } }),
      async show({ server }, context) {
        const params = { serverId: server.id }
        const { cause } = await (await context.connect()).call('servers.compute', { params })
        return factSheet(serverFacts)({ server, unreachable: cause }, context)
      },
    }),
    call('servers.compute', {
      usage: 'compute [SERVER]',
      description: 'show where one server runs, and from which image',
      request: async (_, __, { server }) => ({ params: { serverId: await server() } }),
      show: factSheet(({ compute, image, root, node, state, cause }) => [
        ['Compute', compute],
        ['State', cause === null ? state : `${state}: ${cause}`],
        ['Image', image ?? "the system of berth's machine"],
        ['Root', root ? 'yes' : 'no'],
        ...(node === null ? [] : [['Node', node] as const]),
      ]),
    }),
    call('servers.update', {
      usage: 'update [SERVER]',
      description: 'change its label or region',
      options: { region, task },
      request: async (_, { task, region }, { server }) => {
        if (task === undefined && region === undefined)
          throw new UsageError('Say what to change: --task or --region.')
        checkLabel(task)
        return { params: { serverId: await server() }, body: { task, region } }
      },
      show: factSheet(serverFacts),
    }),
    call('servers.update', {
      usage: 'rename [SERVER] <LABEL>',
      description: 'give it another label; commands know it by that too',
      request: async ([label], _, { server }) => {
        checkLabel(label)
        return { params: { serverId: await server() }, body: { task: label } }
      },
      show: async ({ server: { id, task } }, { connect }) =>
        `${id} is now called ${printable(task) || 'nothing'}.\n${await labelWarning(await connect(), id)}`,
    }),
    action({
      usage: 'delete [SERVER]',
      operations: ['servers.delete'],
      description: 'delete a server with everything on it',
      access: 'api',
      async run({ session: { context }, connect, server, print }) {
        const client = await connect()
        const params = { serverId: await server() }
        const deleted = await showWhile(context.stderr, `delete ${params.serverId}`, () =>
          client.call('servers.delete', { params }),
        )
        const { USED_SERVERS } = await import('../directory-choices.ts')
        const wasChosen = USED_SERVERS.forget(context, client.baseUrl, deleted.id)
        const rest = wasChosen ? ' "berth use" had chosen it here, and means none now.' : ''
        return print(deleted, ({ id }) => `Deleted ${id}.${rest}\n`)
      },
      async loss({ connect, server }) {
        const client = await connect()
        const params = { serverId: await server() }
        const [found, { projects }] = await Promise.all([
          client.call('servers.get', { params }),
          client.call('projects.list', { params }),
        ])
        const { id, task } = found.server
        const label = task === '' ? '' : ` (${printable(task)})`
        const apps = projects.length === 0 ? '' : ` and its ${count(projects.length, 'project')}`
        return `${id}${label} is deleted with all files on it${apps}.`
      },
    }),
    action({
      usage: 'network [SERVER]',
      operations: ['control.serverNetwork.get', 'control.serverNetwork.update'],
      description: 'show or change what a server may reach',
      access: 'control',
      options: {
        outbound: choiceOption('MODE', OUTBOUND_MODES.join(', '), OUTBOUND_MODES),
        addHost: repeatedOption(
          'HOST',
          'allow a host too, such as example.com:443 or 10.0.0.5:5432; repeatable',
        ),
        removeHost: repeatedOption('HOST', 'take a host from the list; repeatable'),
        default: flag("return to the instance's default"),
      },
      help: `
  open    all that this machine reaches, but not itself
  public  the internet and the listed hosts, no private networks
  list    the listed hosts only
  none    nothing

A change holds at once, and cuts connections that it no longer allows. Without
options the command shows what holds and what was refused.

Examples:
  berth servers network srv_…
  berth servers network srv_… --outbound list --add-host registry.npmjs.org:443
  berth servers network srv_… --add-host 10.0.0.5:5432
  berth servers network srv_… --default
`,
      async run({ options, connect, server, print }) {
        const { outbound, addHost = [], removeHost = [], default: isDefault } = options
        const changesHosts = addHost.length + removeHost.length > 0
        if (isDefault && (outbound !== undefined || changesHosts))
          throw new UsageError('--default takes back all that is set: give it alone.')
        const client = await connect()
        const params = { serverId: await server() }
        if (isDefault) {
          const body = { outbound: null, hosts: null }
          return print(await client.call('control.serverNetwork.update', { params, body }), networkText)
        }
        const now = await client.call('control.serverNetwork.get', { params })
        if (outbound === undefined && !changesHosts) return print(now, networkText)
        const missing = removeHost.filter((host) => !now.hosts.includes(host))
        if (missing.length > 0) throw new UsageError(`Not in the list of hosts: ${missing.join(', ')}.`)
        const kept = now.hosts.filter((host) => !removeHost.includes(host))
        const body = { outbound, ...(changesHosts ? { hosts: [...new Set([...kept, ...addHost])] } : {}) }
        return print(await client.call('control.serverNetwork.update', { params, body }), networkText)
      },
    }),
    exportServer,
    importServer,
    moveServer,
    recoverServer,
    act('start', 'wake a sleeping server'),
    act('stop', 'end all its processes'),
    act('restart', 'stop, then start'),
  ],
}

type Network = ResponseOf<'control.serverNetwork.get'>

/** Shows what a server may reach, and below it what was refused. */
function networkText(
  { server_id, outbound, hosts, server_hosts, enforced, refused }: Network,
  { out }: ShowContext<unknown>,
): string {
  const sheet = facts(out, [
    ['ID', server_id],
    ['Outbound', outbound],
    ['Hosts', hosts.join(', ') || '–'],
    ['Ports of this machine', server_hosts.join(', ') || '–'],
    [
      'Enforced',
      enforced === null
        ? 'when it runs'
        : enforced
          ? 'yes'
          : 'no: rules need a server of this machine with a network of its own',
    ],
  ])
  const lines = refused.map(
    ({ destination, reason, remedy }) => `Refused ${printable(destination)}: ${reason}. ${remedy}\n`,
  )
  return [sheet, ...lines].join('')
}

/** Matches a letter, a digit, a mark or a symbol. */
const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u

/** Throws UsageError for a label that nobody could see. An empty one takes the label away. */
function checkLabel(label: string | undefined): void {
  if (label !== undefined && label !== '' && !VISIBLE.test(label))
    throw new UsageError('A label needs a character that can be seen; "" is none.')
}

/** Returns a warning if commands cannot name a server by its label; empty if they can. */
async function labelWarning(client: Client, id: string): Promise<string> {
  const { servers: all } = await client.call('servers.list')
  const { task = '' } = all.find((server) => server.id === id) ?? {}
  if (task === '') return ''
  const other = all.find((server) => server.task === task && server.id !== id)
  if (other !== undefined)
    return `${other.id} has that label too: name them by their ids, or give one another with "berth servers rename".\n`
  if (/^srv_/i.test(task)) return 'Commands may take that label for an id: it begins as ids do.\n'
  return ''
}

/** Lists the servers that arguments can name: by id or by label. */
async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { servers: all } = await client.call('servers.list', { signal })
  return all.map(({ id, task, status, createdAt }) => ({
    id,
    names: task === '' ? [] : [task],
    state: status,
    createdAt,
    description: task ? `${status}, ${task}` : status,
  }))
}

function act(action: 'start' | 'stop' | 'restart', description: string) {
  return call('servers.act', {
    usage: `${action} [SERVER]`,
    description,
    request: async (_, __, { server }) => ({ params: { serverId: await server() }, body: { action } }),
    show: ({ id, status }) => `${id} is ${status}.\n`,
  })
}
