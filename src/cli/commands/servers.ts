import { type Command, Option } from 'commander'
import { UsageError } from '../../errors.ts'
import type { CreatedServer, Server } from '../../resources/servers/model.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, facts, type Style, table } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

const TIERS = ['small', 'medium', 'large'] as const satisfies readonly Server['tier'][]
const REGIONS = ['us-east', 'us-west', 'eu-west'] as const satisfies readonly Server['region'][]
const ACTIONS = {
  start: 'wake a sleeping server',
  stop: 'end all its processes',
  restart: 'stop, then start',
}

interface Options extends ConnectionOptions {
  json?: boolean
  task?: string
  tier?: string
  region?: string
}

const COLUMNS: Column<Server>[] = [
  { heading: 'ID', cell: (server) => server.id },
  { heading: 'TASK', cell: (server) => server.task },
  { heading: 'TIER', cell: (server) => server.tier },
  { heading: 'STATUS', cell: (server) => server.status, style: (server) => statusStyle(server.status) },
  { heading: 'REGION', cell: (server) => server.region },
  { heading: 'CREDITS', cell: (server) => server.creditsUsed.toFixed(2), right: true },
  { heading: 'STORAGE', cell: (server) => storage(server.storageUsedGb), right: true },
  { heading: 'CREATED', cell: (server) => server.createdAt ?? '' },
  { heading: 'URL', cell: (server) => server.publicUrl ?? '' },
]

/** Adds `servers` and what can be done with them. */
export function registerServers(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const servers = program
    .command('servers')
    .helpCommand(false)
    .summary('provision and manage servers')
    .description('Provisions and manages servers. Plain "berth servers" lists them.')
  const add = (usage: string, description: string) =>
    withConnection(withJson(servers.command(usage).description(description)))

  add('list', 'list all servers, newest first').action(async (options: Options) => {
    const client = await connect(session, options)
    const answer = await client.request<{ servers: Server[] }>('GET', '/servers')
    if (options.json) return printJson(session, answer)
    if (answer.servers.length === 0)
      return stdout.write('No servers yet. Provision one with "berth servers create".\n')
    await stdout.write(table(stdout, COLUMNS, answer.servers))
  })

  withRegion(add('create', 'provision a server'))
    .addOption(new Option('--tier <TIER>', 'small, medium or large (default small)').choices(TIERS))
    .option('--task <TEXT>', 'a short label')
    .action(async (options: Options) => {
      const client = await connect(session, options)
      const { task, tier, region } = options
      const created = await client.request<CreatedServer>('POST', '/servers', {
        body: { task, tier, region },
      })
      if (options.json) return printJson(session, created)
      await stdout.write(`Provisioned ${created.id} (${created.tier}, ${created.status}).\n`)
    })

  add('get <SERVER>', 'show one server').action(async (id: string, options: Options) => {
    const client = await connect(session, options)
    const answer = await client.request<{ server: Server }>('GET', path`/servers/${id}`)
    if (options.json) return printJson(session, answer)
    await stdout.write(facts(stdout, details(answer.server)))
  })

  withRegion(add('update <SERVER>', 'change its label or region'))
    .option('--task <TEXT>', 'a short label')
    .action(async (id: string, options: Options) => {
      const { task, region } = options
      if (task === undefined && region === undefined)
        throw new UsageError('Say what to change: --task or --region.')
      const client = await connect(session, options)
      const answer = await client.request<{ server: Server }>('PATCH', path`/servers/${id}`, {
        body: { task, region },
      })
      if (options.json) return printJson(session, answer)
      await stdout.write(facts(stdout, details(answer.server)))
    })

  add('delete <SERVER>', 'delete a server with everything on it')
    .alias('rm')
    .action(async (id: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<{ id: string }>('DELETE', path`/servers/${id}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${answer.id}.\n`)
    })

  for (const [action, description] of Object.entries(ACTIONS)) {
    add(`${action} <SERVER>`, description).action(async (id: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<Pick<Server, 'id' | 'status'>>(
        'POST',
        path`/servers/${id}/actions`,
        { body: { action } },
      )
      if (options.json) return printJson(session, answer)
      await stdout.write(`${answer.id} is ${answer.status}.\n`)
    })
  }
}

const withRegion = (command: Command): Command =>
  command.addOption(new Option('--region <REGION>', 'us-east, us-west or eu-west').choices(REGIONS))

const details = (server: Server): [string, string][] => [
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

function statusStyle(status: Server['status']): Style {
  if (status === 'running') return 'green'
  return status === 'building' ? 'yellow' : 'dim'
}

const storage = (gigabytes: number): string =>
  gigabytes < 1 ? `${(gigabytes * 1000).toFixed(1)} MB` : `${gigabytes.toFixed(2)} GB`
