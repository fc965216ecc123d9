import type { ServerProcess } from '../../resources/processes/model.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { choiceOption, textOption } from '../options.ts'
import { formatBytes } from '../output.ts'
import { listOrNone } from '../server-or-new.ts'
import { showWhile } from '../status-line.ts'
import type { Column } from '../table.ts'

const owner = ({ belongs_to: owner }: ServerProcess): string =>
  owner === null ? '' : owner.id === null ? owner.kind : `${owner.kind} ${owner.id}`

const COLUMNS: readonly Column<ServerProcess>[] = [
  { heading: 'PID', cell: ({ pid }) => String(pid), right: true },
  { heading: 'CPU', cell: ({ cpu_percent }) => `${cpu_percent.toFixed(1)} %`, right: true },
  { heading: 'MEMORY', cell: ({ memory_bytes }) => formatBytes(memory_bytes), right: true },
  { heading: 'STATE', cell: ({ state }) => state, minor: 2 },
  { heading: 'PORTS', cell: ({ ports }) => ports.join(' ') },
  { heading: 'STARTED', cell: ({ started_at }) => started_at, minor: 1 },
  { heading: 'BELONGS TO', cell: owner, minor: 3 },
  { heading: 'COMMAND', cell: ({ command }) => command, elastic: true },
]

const server = textOption('SERVER', 'the server that it runs on; needed where there are several')

/** `berth processes` */
export const processesNoun: Noun = {
  name: 'processes',
  aliases: ['ps'],
  summary: 'what runs on a server',
  description:
    'Lists the processes of a server, and ends them. Plain "berth ps" lists those of the only server, or of the one of "berth use"; "berth ps SERVER" those of another.',
  commands: [
    action({
      usage: 'list [SERVER]',
      operations: ['processes.list'],
      description: 'list what runs on a server, with its use of processors and memory, and its ports',
      access: 'api',
      async run({ session: { context }, connect, server, print }) {
        const client = await connect()
        let empty = 'There is no server yet, so nothing runs.\n'
        const list = (serverId: string) => {
          empty = `Nothing runs on ${serverId}.\n`
          return showWhile(context.stderr, `list what runs on ${serverId}`, () =>
            client.call('processes.list', { params: { serverId } }),
          )
        }
        const running = await listOrNone(server, list, { processes: [] })
        await print(running, rows('processes', COLUMNS, empty))
      },
    }),
    call('processes.delete', {
      usage: 'delete <PID>',
      description: 'end a process by a signal',
      options: {
        server,
        signal: choiceOption('SIGNAL', 'the signal (default TERM)', ['TERM', 'KILL', 'INT', 'HUP']),
      },
      request: async ([pid], { signal }, { server }) => ({
        params: { serverId: await server(), pid },
        query: { signal },
      }),
      show: ({ pid, signal, ended }) =>
        ended
          ? `${pid} has ended.\n`
          : `${pid} was sent ${signal} and still runs.${signal === 'KILL' ? '' : ' End it with --signal KILL.'}\n`,
    }),
  ],
}
