import { UsageError } from '../../errors.ts'
import type { Terminal, TerminalScreen } from '../../resources/terminals/model.ts'
import type { Client } from '../client.ts'
import { action, call, factSheet, type Noun, rows } from '../command.ts'
import { CommandError } from '../errors.ts'
import { type Named, type NameWords, pick } from '../names.ts'
import { duration, flag, type OptionsOf, repeatedOption, textOption, wholeNumber } from '../options.ts'
import { printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { listOrNone } from '../server-or-new.ts'
import type { Column } from '../table.ts'

const WORDS: NameWords = {
  one: 'terminal',
  by: ['name'],
  listedBy: 'berth terminals',
  none: 'Open one with "berth shell".',
}

const command = (terminal: Terminal): string => terminal.command ?? 'login shell'

const state = ({ exit_code: code }: Terminal): string => (code === null ? 'running' : `exited with ${code}`)

const COLUMNS: readonly Column<Terminal>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'COMMAND', cell: command, elastic: true },
  { heading: 'STATE', cell: state, style: ({ exit_code }) => (exit_code === null ? 'green' : 'dim') },
  { heading: 'SIZE', cell: ({ columns, rows }) => `${columns}×${rows}`, minor: 2 },
  { heading: 'VIEWERS', cell: ({ viewers }) => String(viewers), right: true, minor: 3 },
  { heading: 'LAST USED', cell: ({ last_used_at }) => last_used_at, minor: 1 },
]

const server = textOption('SERVER', 'the server that it is on; needed where there are several')
const cells = (placeholder: string, description: string) =>
  wholeNumber(placeholder, description, { most: 10_000, expected: 'a whole number from 1 to 10000' })

/** What a command waits for. */
const WAIT_OPTIONS = {
  until: textOption('PATTERN', 'wait until this is shown: a regular expression, matched line by line'),
  quiet: duration('DURATION', 'wait until nothing was printed for this long'),
  timeout: duration('DURATION', 'wait no longer than this (default 10s)'),
  lines: cells('N', 'with the last rows above the screen'),
}

const waitOf = ({ until, quiet, timeout, lines }: OptionsOf<typeof WAIT_OPTIONS>) => ({
  until,
  quiet_ms: quiet,
  timeout_ms: timeout,
  lines,
})

/** Returns a screen as text. A program can leave characters on it that turn the order of others around. */
function shownScreen({ screen: { scrollback, text } }: { screen: TerminalScreen }): string {
  const lines = (scrollback === '' ? text : `${scrollback}\n${text}`).split('\n')
  return lines.map((line) => `${printable(line)}\n`).join('')
}

/** Says on stderr if the pattern did not come. */
async function exitCodeOf(
  { screen }: { screen: TerminalScreen },
  until: string | undefined,
  { stderr }: ProcessContext,
): Promise<number> {
  const { outcome, exit_code: exitCode } = screen
  if (until === undefined || outcome === 'matched') return 0
  const why = outcome === 'exited' ? `the program has ended with ${exitCode}` : WHY_NOT[outcome]
  await stderr.write(`berth: nothing matched ${JSON.stringify(until)}: ${why}.\n`)
  return 1
}

const WHY_NOT = {
  none: 'it was not waited for',
  quiet: 'nothing was printed for the time of --quiet',
  timeout: 'the time of --timeout was over (default 10s)',
}

/** `berth terminals` */
export const terminalsNoun: Noun = {
  name: 'terminals',
  summary: 'terminals of a server, which run on without viewers',
  description: 'Lists, opens, uses and ends terminals of a server. Plain "berth terminals" lists them.',
  names: [{ placeholder: 'TERMINAL', words: null, list: listNamed }],
  commands: [
    action({
      usage: 'list',
      operations: ['terminals.list'],
      description: 'list the terminals of a server, newest first',
      access: 'api',
      options: { server },
      async run({ connect, server, print }) {
        const client = await connect()
        const list = (serverId: string) => client.call('terminals.list', { params: { serverId } })
        await print(
          await listOrNone(server, list, { terminals: [] }),
          rows('terminals', COLUMNS, `No terminals yet. ${WORDS.none}\n`),
        )
      },
    }),
    call('terminals.create', {
      usage: 'create [COMMAND]',
      description: 'start a command on a new terminal, or a login shell without one',
      hints: { 'too many arguments': 'Put a command of several words in quotes.\n' },
      options: {
        server,
        name: textOption('NAME', 'a name for it (default by the program)'),
        cwd: textOption('DIR', 'directory of the workspace to begin in'),
        columns: cells('N', 'characters in a row (default 80)'),
        rows: cells('N', 'rows of the screen (default 24)'),
      },
      request: async ([command], { name, cwd, columns, rows }, { server }) => ({
        params: { serverId: await server() },
        body: { command, name, cwd, columns, rows },
      }),
      id: ({ terminal }) => terminal.id,
      show: ({ terminal }) => `Opened ${terminal.id}, named ${terminal.name}.\n`,
    }),
    action({
      usage: 'get [TERMINAL]',
      operations: ['terminals.get'],
      description: 'show one terminal, by its id or name',
      access: 'api',
      options: { server },
      async run({ args: [named], connect, server, print }) {
        const terminal = await findTerminal(await connect(), await server(), named)
        await print(
          { terminal },
          factSheet(({ terminal }) => [
            ['ID', terminal.id],
            ['Name', terminal.name],
            ['Command', command(terminal)],
            ['Directory', terminal.cwd || '~'],
            ['State', state(terminal)],
            ['Size', `${terminal.columns}×${terminal.rows}`],
            ['Viewers', String(terminal.viewers)],
            ['Started', terminal.started_at],
            ['Last used', terminal.last_used_at],
          ]),
        )
      },
    }),
    action({
      usage: 'type <TERMINAL> [TEXT]',
      operations: ['terminals.type'],
      description: 'type text, press keys, and print what the screen shows then',
      help: `
TEXT is typed first, then the keys are pressed: enter, tab, space, escape,
backspace, delete, insert, up, down, left, right, home, end, pageup, pagedown,
f1 to f12, any single character, and these after ctrl-, alt- or shift-.

It prints the screen when nothing was printed for 250 ms, or when what the
options name has come. --until looks only at what is new. The exit code is 1 if
it does not come.

Examples:
  berth terminals type shell 'python3 -q' --key enter --until '>>> $'
  berth terminals type shell --key ctrl-c
`,
      access: 'api',
      options: {
        server,
        key: repeatedOption('KEY', 'a key to press after the text; may be given several times'),
        paste: flag('paste the text, as one piece'),
        ...WAIT_OPTIONS,
      },
      async run({ args: [named, text], options, connect, server, session, print }) {
        const { key: keys, paste } = options
        if (text === undefined && keys === undefined)
          throw new UsageError('Give a text to type, or a key: --key enter')
        const client = await connect()
        const serverId = await server()
        const { id } = await findTerminal(client, serverId, named)
        const params = { serverId, terminalId: id }
        const body = { text, keys, paste, ...waitOf(options) }
        const result = await client.call('terminals.type', { params, body })
        await print(result, shownScreen)
        return exitCodeOf(result, options.until, session.context)
      },
    }),
    action({
      usage: 'screen [TERMINAL]',
      operations: ['terminals.screen'],
      description: 'print what a terminal shows, now or when something has come',
      help: `
The exit code is 1 if --until does not come.

Examples:
  berth terminals screen
  berth terminals screen dev --until 'ready in \\d+ ms' --timeout 1m
`,
      access: 'api',
      options: { server, ...WAIT_OPTIONS },
      async run({ args: [named], options, connect, server, session, print }) {
        const client = await connect()
        const serverId = await server()
        const { id } = await findTerminal(client, serverId, named)
        const params = { serverId, terminalId: id }
        const result = await client.call('terminals.screen', { params, query: waitOf(options) })
        await print(result, shownScreen)
        return exitCodeOf(result, options.until, session.context)
      },
    }),
    action({
      usage: 'delete <TERMINAL>',
      operations: ['terminals.delete'],
      description: 'hang a terminal up, by its id or name',
      access: 'api',
      options: { server },
      async run({ args: [named], connect, server, print }) {
        const client = await connect()
        const serverId = await server()
        const { id } = await findTerminal(client, serverId, named)
        const deleted = await client.call('terminals.delete', { params: { serverId, terminalId: id } })
        await print(deleted, () => `Hung ${id} up.\n`)
      },
    }),
  ],
}

/**
 * Returns the terminal that a person means. One that runs goes before one of the same name that has ended.
 *
 * @throws CommandError if there is none, or more than one
 */
export async function findTerminal(
  client: Client,
  serverId: string,
  named: string | undefined,
): Promise<Terminal> {
  const { terminals: all } = await client.call('terminals.list', { params: { serverId } })
  const running = all.find(({ name, exit_code }) => exit_code === null && name === named)
  return running ?? pick(all.map(withNames), named, WORDS, 'TERMINAL', state)
}

/**
 * Returns the terminal of a server that was opened last, of those that run.
 *
 * @throws CommandError if none runs
 */
export async function lastTerminal(client: Client, serverId: string): Promise<Terminal> {
  const { terminals: all } = await client.call('terminals.list', { params: { serverId } })
  const newest = all.find(({ exit_code }) => exit_code === null)
  if (newest) return newest
  throw new CommandError(`No terminal runs on ${serverId}. Open one with: berth shell ${serverId}`)
}

const withNames = (terminal: Terminal) => ({
  ...terminal,
  names: [terminal.name],
  createdAt: terminal.started_at,
})

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { servers } = await client.call('servers.list', { signal })
  const lists = await Promise.all(
    servers.map(({ id }) => client.call('terminals.list', { params: { serverId: id }, signal })),
  )
  return lists.flatMap(({ terminals }) =>
    terminals.map((terminal) => ({
      id: terminal.id,
      names: [terminal.name],
      description: `${state(terminal)}, ${command(terminal)}`,
    })),
  )
}
