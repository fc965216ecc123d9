import type { ServerUsage } from '../../resources/usage/model.ts'
import { formatBytes } from '../output.ts'
import { call, factSheet, type Noun, rows } from '../runner.ts'
import type { Column } from '../table.ts'

const cpu = ({ cpu_percent: percent, cpus }: ServerUsage): string => `${percent.toFixed(1)} % of ${cpus}`

const memory = ({ memory_bytes: bytes, memory_limit_bytes: limit }: ServerUsage): string =>
  share(bytes, limit)

const storage = ({ storage_bytes: bytes, storage_limit_bytes: limit }: ServerUsage): string =>
  share(bytes, limit)

const processCount = ({ processes, processes_limit: limit }: ServerUsage): string =>
  `${processes} of ${limit}`

const share = (bytes: number, limit: number): string => `${formatBytes(bytes)} of ${formatBytes(limit)}`

const COLUMNS: readonly Column<ServerUsage>[] = [
  { heading: 'SERVER', cell: ({ server_id }) => server_id },
  { heading: 'STATUS', cell: ({ status }) => status },
  { heading: 'CPU', cell: cpu, right: true },
  { heading: 'MEMORY', cell: memory, right: true },
  { heading: 'STORAGE', cell: storage, right: true, minor: 2 },
  { heading: 'PROCESSES', cell: processCount, right: true, minor: 1 },
]

/** `berth usage` */
export const usage: Noun = {
  name: 'usage',
  summary: 'what servers use now, and what they may',
  description: 'Measures what servers use. Plain "berth usage" measures all of them.',
  commands: [
    call('usage.servers', {
      usage: 'list',
      description: 'measure all servers, newest first',
      show: rows('servers', COLUMNS, 'No servers yet. Provision one with "berth servers create".\n'),
    }),
    call('usage.get', {
      usage: 'get [SERVER]',
      description: 'measure one server, with its open ports',
      request: async (_, __, { server }) => ({ params: { serverId: await server() } }),
      show: factSheet(({ usage }) => [
        ['Server', usage.server_id],
        ['Status', usage.status],
        ['CPU', cpu(usage)],
        ['Memory', memory(usage)],
        ['Storage', storage(usage)],
        ['Processes', processCount(usage)],
        ['Ports', usage.ports.join(' ') || 'none'],
      ]),
    }),
  ],
}
