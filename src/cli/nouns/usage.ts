import type { AccountUsage, ServerUsage } from '../../resources/usage/model.ts'
import { action, call, factSheet, type Noun, rows } from '../command.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag, wholeNumber } from '../options.ts'
import { formatBytes, paint } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { showWhile } from '../status-line.ts'
import { type Column, table } from '../table.ts'

/**
 * Returns what is measured as a text, and a dash of a server that cannot be reached, which a berth of an earlier version does not
 * say.
 */
const measured = ({ unreachable }: ServerUsage, text: string): string => (unreachable ? '–' : text)

const status = ({ status: known, unreachable }: ServerUsage): string => (unreachable ? 'unreachable' : known)

const cpu = (usage: ServerUsage): string =>
  measured(usage, `${usage.cpu_percent.toFixed(1)} % of ${usage.cpus}`)

const memory = (usage: ServerUsage): string =>
  measured(usage, share(usage.memory_bytes, usage.memory_limit_bytes))

const storage = ({ storage_bytes: bytes, storage_limit_bytes: limit }: ServerUsage): string =>
  share(bytes, limit)

const processCount = (usage: ServerUsage): string =>
  measured(usage, `${usage.processes} of ${usage.processes_limit}`)

const share = (bytes: number, limit: number): string => `${formatBytes(bytes)} of ${formatBytes(limit)}`

const COLUMNS: readonly Column<ServerUsage>[] = [
  { heading: 'SERVER', cell: ({ server_id }) => server_id },
  { heading: 'STATUS', cell: status },
  { heading: 'CPU', cell: cpu, right: true },
  { heading: 'MEMORY', cell: memory, right: true },
  { heading: 'STORAGE', cell: storage, right: true, minor: 2 },
  { heading: 'PROCESSES', cell: processCount, right: true, minor: 1 },
]

const NONE = 'No servers yet. Provision one with "berth servers create".\n'

/** Returns a measurement as a line. */
const usageLine = (out: OutputStream, usage: ServerUsage): string =>
  [
    paint(out, 'dim', usage.measured_at),
    usage.server_id,
    status(usage).padEnd(8),
    cpu(usage).padStart(14),
    memory(usage).padStart(20),
    storage(usage).padStart(20),
    `${processCount(usage)} processes\n`,
  ].join('  ')

/** A day of a server, as a row. */
interface DayRow {
  readonly day: string
  readonly server: AccountUsage['days'][number]['servers'][number] | null
}

const DAY_COLUMNS: readonly Column<DayRow>[] = [
  { heading: 'DAY', cell: ({ day }) => day },
  { heading: 'SERVER', cell: ({ server }) => server?.server_id ?? '' },
  { heading: 'LABEL', cell: ({ server }) => server?.task ?? '', elastic: true },
  { heading: 'CREDITS', cell: ({ server }) => String(server?.credits ?? 0), right: true },
  { heading: 'RUNNING', cell: ({ server }) => String(server?.running ?? 0), right: true, minor: 1 },
  { heading: 'TASKS', cell: ({ server }) => String(server?.tasks ?? 0), right: true, minor: 2 },
  { heading: 'BUILDS', cell: ({ server }) => String(server?.builds ?? 0), right: true, minor: 3 },
]

/** Returns the rows of a day: of each server that used something, or an empty one. */
const dayRows = ({ day, servers }: AccountUsage['days'][number]): DayRow[] =>
  servers.length === 0 ? [{ day, server: null }] : servers.map((server) => ({ day, server }))

/** `berth usage` */
export const usageNoun: Noun = {
  name: 'usage',
  summary: 'what servers use now, and the credits of the account',
  description:
    'Measures what servers use, and shows the credits of the account. Plain "berth usage" measures all servers.',
  commands: [
    action({
      usage: 'list',
      operations: ['usage.servers'],
      description: 'measure all servers, newest first',
      access: 'api',
      options: { follow: flag('measure those that run every 2 s, until Ctrl-C', { short: 'f' }) },
      help: `
Examples:
  berth usage -f                               a line for each measurement
  berth usage -f --json | jq .memory_bytes     for programs, one line each
`,
      async run({ session: { context }, options, connect, print }) {
        const client = await connect()
        if (!options.follow) {
          const measured = await showWhile(context.stderr, 'measure all servers', () =>
            client.call('usage.servers'),
          )
          return print(measured, rows('servers', COLUMNS, NONE))
        }
        return untilInterrupted(async (signal) => {
          for await (const { data } of client.stream('usage.servers', { signal }))
            if (data.type === 'usage' && data.value !== null)
              await print(data.value, (value, { out }) => usageLine(out, value))
          return 0
        })
      },
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
        ['Last used', usage.last_used_at ?? 'never'],
      ]),
    }),
    call('usage.account', {
      usage: 'account',
      description: 'show the credits of the account, by day and server, and what is left this month',
      options: {
        days: wholeNumber('N', 'days up to today (default 30)', {
          most: 400,
          expected: 'a whole number from 1 to 400',
        }),
      },
      request: (_, { days }) => ({ query: { days } }),
      show: ({ usage }, { out, layout }) => {
        const { month, credits_used: used, budget_cap: cap, credits_remaining: left } = usage
        const unknown = usage.credits_unattributed
        return [
          table(out, DAY_COLUMNS, usage.days.flatMap(dayRows), layout),
          `\n${month}: ${used} of ${cap} credits used, ${left} left.`,
          unknown === 0 ? '' : ` ${unknown} of them are not known by day.`,
          '\n',
        ].join('')
      },
    }),
  ],
}
