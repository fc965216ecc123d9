import { UsageError } from '../../errors.ts'
import type { Execution, ExecutionOutput } from '../../resources/exec/model.ts'
import type { Client } from '../client.ts'
import { action, factSheet, jsonLines, type Noun, rows } from '../command.ts'
import { followWork } from '../follow.ts'
import { type Named, type NameWords, pick } from '../names.ts'
import { choiceOption, flag, textOption } from '../options.ts'
import { count, formatBytes, printJson } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { listOrNone } from '../server-or-new.ts'
import type { Column } from '../table.ts'

const WORDS: NameWords = {
  one: 'execution',
  listedBy: 'berth executions',
  none: 'Start one with "berth exec --detach".',
}

/** Exit code of a command that timed out, as in timeout(1), and of one that berth ended. */
const TIMED_OUT = 124
const ENDED = 1

/** Most bytes of one write to standard input. */
const PIECE_BYTES = 1024 * 1024

function state({ status, exitCode, timedOut }: Execution): string {
  if (status === 'exited') return `exited with ${exitCode}`
  return timedOut ? 'ended by its timeout' : status
}

const COLUMNS: readonly Column<Execution>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATE', cell: state, style: ({ status }) => (status === 'running' ? 'green' : 'dim') },
  { heading: 'PID', cell: ({ pid }) => String(pid ?? ''), right: true, minor: 3 },
  {
    heading: 'OUTPUT',
    cell: ({ stdoutBytes, stderrBytes }) => formatBytes(stdoutBytes + stderrBytes),
    right: true,
    minor: 2,
  },
  { heading: 'STARTED', cell: ({ startedAt }) => startedAt, minor: 1 },
  { heading: 'COMMAND', cell: ({ command }) => command, elastic: true },
]

const server = textOption('SERVER', 'the server that it runs on')

/** `berth executions` */
export const executionsNoun: Noun = {
  name: 'executions',
  summary: 'commands that run without a request that waits for them',
  description:
    'Lists commands that were started with "berth exec --detach", reads their output, writes to them and ends them. One that has ended is kept for 10 minutes.',
  names: [{ placeholder: 'EXECUTION', words: null, list: listNamed }],
  commands: [
    action({
      usage: 'list [SERVER]',
      operations: ['executions.list'],
      description: 'list the executions of a server, newest first',
      access: 'api',
      async run({ connect, server, print }) {
        const client = await connect()
        const list = (serverId: string) => client.call('executions.list', { params: { serverId } })
        await print(
          await listOrNone(server, list, { executions: [] }),
          rows('executions', COLUMNS, `No executions. ${WORDS.none}\n`),
        )
      },
    }),
    action({
      usage: 'get [EXECUTION]',
      operations: ['executions.get'],
      description: 'show one execution',
      access: 'api',
      options: { server },
      async run({ args: [named], connect, options, idOf, print }) {
        const execution = await find(await connect(), await idOf('SERVER', options.server), named)
        await print(
          { execution },
          factSheet(({ execution }) => [
            ['ID', execution.id],
            ['Server', execution.serverId],
            ['Command', execution.command],
            ['State', state(execution)],
            ['PID', String(execution.pid ?? '')],
            ['Output', formatBytes(execution.stdoutBytes)],
            ['Errors', formatBytes(execution.stderrBytes)],
            ['Started', execution.startedAt],
            ['Ended', execution.endedAt ?? ''],
          ]),
        )
      },
    }),
    action({
      usage: 'output [EXECUTION]',
      operations: ['executions.output'],
      description: 'print what an execution has printed, and with -f what it prints until it ends',
      help: `
Its standard output goes to standard output, its standard error to standard
error. Of each the first 64 KiB and the last 1 MiB are kept. With -f the exit
code is the command's own, ${TIMED_OUT} if it ran out of time, and ${ENDED} if its server, berth
or a limit ended it. Ctrl-C ends the following, not the command.

Examples:
  berth executions output exe_…
  berth executions output exe_… -f
`,
      access: 'api',
      json: jsonLines('response'),
      options: {
        server,
        follow: flag('go on until it has ended', { short: 'f' }),
        stream: choiceOption('STREAM', 'only this stream', ['stdout', 'stderr']),
        after: textOption('ID', 'only what it printed behind this entry'),
      },
      async run({ args: [named], options, connect, idOf, session: { context } }) {
        const client = await connect()
        const { id, serverId } = await find(client, await idOf('SERVER', options.server), named)
        const { follow, stream, after, json } = options
        const hint = `${id} goes on. Read on with: berth executions output ${id} -f\n`
        return followWork(context.stderr, hint, async (signal) => {
          const printed = new PrintedOutput(context)
          for (let next = after; ; ) {
            const query = { after: next, stream, ...(follow ? { follow: 'true' as const } : {}) }
            const params = { serverId, executionId: id }
            const page = await client.call('executions.output', { params, query, signal })
            if (json) await printJson(context.stdout, page)
            else await printed.add(page)
            next = page.next
            if (page.output.length > 0) continue
            if (!follow) return 0
            if (page.execution.status !== 'running') return exitCodeOf(page.execution, context)
          }
        })
      },
    }),
    action({
      usage: 'input <EXECUTION> [TEXT]',
      operations: ['executions.input'],
      description: 'write to the standard input of an execution',
      help: `
Of one that was started with "berth exec --detach -i". TEXT is written as it
is, without a line break behind it unless --line is given. Without TEXT it is
what standard input has, and with --end alone nothing.

Examples:
  berth executions input exe_… yes --line
  berth executions input exe_… --end < data.csv
`,
      access: 'api',
      options: {
        server,
        line: flag('write a line break behind the text'),
        end: flag('end its standard input after that'),
      },
      async run({ args: [named, text], options, connect, idOf, session: { context }, print }) {
        const { line, end } = options
        if (line && text === undefined) throw new UsageError('--line needs a text.')
        const client = await connect()
        const { id, serverId } = await find(client, await idOf('SERVER', options.server), named)
        const params = { serverId, executionId: id }
        const write = (body: { text?: string; base64?: string; end?: boolean }) =>
          client.call('executions.input', { params, body })
        let written = 0
        if (text !== undefined)
          ({ written } = await write({ text: line ? `${text}\n` : text, ...(end && { end }) }))
        else {
          if (!end || !context.stdin.isTTY) {
            for await (const bytes of context.stdin.stream()) {
              for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
                const base64 = Buffer.from(bytes.subarray(at, at + PIECE_BYTES)).toString('base64')
                written += (await write({ base64 })).written
              }
            }
          }
          if (end) await write({ end })
        }
        await print({ written }, () => `Wrote ${count(written, 'byte')}.\n`)
      },
    }),
    action({
      usage: 'delete <EXECUTION>',
      operations: ['executions.delete'],
      description: 'end an execution, or remove one that has ended',
      access: 'api',
      options: { server },
      async run({ args: [named], options, connect, idOf, print }) {
        const client = await connect()
        const { id, serverId, status } = await find(client, await idOf('SERVER', options.server), named)
        const deleted = await client.call('executions.delete', { params: { serverId, executionId: id } })
        await print(deleted, () => (status === 'running' ? `Ended ${id}.\n` : `Removed ${id}.\n`))
      },
    }),
  ],
}

/** Prints pages of output, and notes what is missing between them. */
class PrintedOutput {
  readonly #context: ProcessContext
  readonly #ends = { stdout: 0, stderr: 0 }
  #isFirst = true

  constructor(context: ProcessContext) {
    this.#context = context
  }

  async add({ output }: ExecutionOutput): Promise<void> {
    for (const { stream, offset, data, encoding } of output) {
      const bytes = Buffer.from(data, encoding ?? 'utf8')
      const missing = offset - this.#ends[stream]
      if (missing > 0 && !this.#isFirst)
        await this.#context.stderr.write(`berth: ${count(missing, 'byte')} of ${stream} are not kept\n`)
      this.#isFirst = false
      await this.#context[stream].write(bytes)
      this.#ends[stream] = offset + bytes.length
    }
  }
}

/** Returns the exit code for an execution that has ended. Says on stderr if berth ended it. */
async function exitCodeOf(
  { id, status, exitCode, timedOut }: Execution,
  { stderr }: ProcessContext,
): Promise<number> {
  if (status === 'exited') return exitCode ?? ENDED
  if (timedOut) await stderr.write('berth: the command ran out of time and was ended\n')
  else await stderr.write(`berth: ${id} was ended: by its server, by berth, by the budget or by a limit\n`)
  return timedOut ? TIMED_OUT : ENDED
}

/**
 * Returns the execution that a person means, on any server unless one is given.
 *
 * @throws CommandError if there is none, or more than one
 */
async function find(
  client: Client,
  serverId: string | undefined,
  named: string | undefined,
): Promise<Execution> {
  const all = await listAll(client, serverId)
  return pick(
    all.map((execution) => ({ ...execution, createdAt: execution.startedAt })),
    named,
    WORDS,
    'EXECUTION',
    state,
  )
}

async function listAll(client: Client, serverId?: string, signal?: AbortSignal): Promise<Execution[]> {
  const ids =
    serverId === undefined
      ? (await client.call('servers.list', { signal })).servers.map(({ id }) => id)
      : [serverId]
  const lists = await Promise.all(
    ids.map((id) => client.call('executions.list', { params: { serverId: id }, signal })),
  )
  return lists.flatMap(({ executions }) => executions)
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const all = await listAll(client, undefined, signal)
  return all.map((execution) => ({
    id: execution.id,
    description: `${state(execution)}, ${execution.command}`,
  }))
}
