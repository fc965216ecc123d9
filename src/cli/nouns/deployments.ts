import type { Deployment } from '../../resources/deployments/model.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { APP_LOG_OPTIONS, checkWorker, deploymentLog, showLog } from '../log.ts'
import { textOption } from '../options.ts'
import { printable } from '../output.ts'
import { listOrNone, serverName } from '../server-or-new.ts'
import type { Column } from '../table.ts'

const COLUMNS: readonly Column<Deployment>[] = [
  { heading: 'URL', cell: ({ url }) => url },
  {
    heading: 'STATUS',
    cell: (deployment) => `${appStatus(deployment)}${deployment.port_taken ? ', port taken' : ''}`,
    style: ({ live, crash, port_taken }) => (crash || port_taken ? 'red' : live ? 'green' : 'dim'),
  },
]

function appStatus({ live, crash, failed_change }: Deployment): string {
  if (crash) return 'crashed'
  if (!live) return 'not live'
  return failed_change ? 'live, update failed' : 'live'
}

const server = textOption('SERVER', 'the server; needed where there are several')

/** `berth deployments` */
export const deploymentsNoun: Noun = {
  name: 'deployments',
  summary: 'list what a server publishes',
  description:
    'Lists what a server publishes. "berth deploy" also writes the files of a directory first. A deployment ends with its server, or with "berth deployments delete".',
  commands: [
    action({
      usage: 'list [SERVER]',
      operations: ['deployments.list'],
      description: 'list what a server publishes',
      access: 'api',
      async run({ connect, server, print }) {
        const client = await connect()
        let empty =
          'There is no server yet, so nothing is published. Publish a directory with "berth deploy DIR".\n'
        const list = (serverId: string) => {
          empty = `${serverId} publishes nothing yet. Publish its workspace with "berth deploy".\n`
          return client.call('deployments.list', { params: { serverId } })
        }
        const published = await listOrNone(server, list, { deployments: [] })
        await print(published, rows('deployments', COLUMNS, empty))
      },
    }),
    call('deployments.create', {
      usage: 'create',
      description: 'publish the workspace of a server',
      options: { server },
      request: async (_, __, { server }) => ({ params: { serverId: await server() } }),
      show: ({ url, warnings }) =>
        [`Published at ${url}\n`, ...warnings.map((text) => `Warning: ${printable(text)}\n`)].join(''),
    }),
    call('deployments.delete', {
      usage: 'delete [SERVER]',
      description: 'end what a server publishes; its files stay',
      request: async (_, __, { server }) => ({ params: { serverId: await server() } }),
      show: ({ url }) => `Nothing is published at ${url} any more. The files stay.\n`,
      async loss({ connect, server }) {
        const serverId = await server()
        const { deployments } = await (await connect()).call('deployments.list', { params: { serverId } })
        const [published] = deployments
        return published === undefined
          ? null
          : `${published.url} goes down; another publication gets another URL.`
      },
    }),
    action({
      usage: 'logs [SERVER]',
      operations: ['deployments.logs'],
      description: 'print what the app that a server publishes printed, and why it did not come up',
      access: 'api',
      options: APP_LOG_OPTIONS,
      async run({ session, options, connect, server, print }) {
        const client = await connect()
        const serverId = await server()
        const log = deploymentLog(client, serverId)
        const [{ logs }, { deployments }] = await Promise.all([
          log.read({ tail: 1 }),
          client.call('deployments.list', { params: { serverId } }),
        ])
        if (logs.length === 0 && deployments.length === 0) {
          await session.context.stderr.write(
            `${await serverName(client, serverId)} publishes nothing, so there is no log. "berth deploy" publishes its workspace; "berth projects logs" is the log of a project.\n`,
          )
        } else {
          const workers = deployments.flatMap((one) => one.workers)
          checkWorker(await serverName(client, serverId), workers, options.worker)
        }
        return showLog(print, log, options)
      },
    }),
  ],
}
