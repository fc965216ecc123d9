import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { ExecResult } from '../../resources/exec/model.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import type { ConnectionOptions } from '../instance.ts'
import { path } from '../path.ts'
import { shellQuote } from '../quote.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  cwd?: string
  env?: string[]
  timeout?: string
  stdin?: boolean
}

type Exit = Pick<ExecResult, 'exitCode' | 'timedOut' | 'truncated'>

/** The exit code of a command that ran out of time, as timeout(1) has it. */
const TIMED_OUT = 124

const MORE = `
Several words behind -- reach the command as they stand; a single one is shell text:
  berth exec srv_… -- grep -r "two words" src
  berth exec srv_… 'cd app && npm test | tail -5'
The exit code is the command's own, or ${TIMED_OUT} when it ran out of time. Ctrl-C ends the command.
`

/** Adds `exec`. */
export function registerExec(program: Command, session: Session): void {
  const exec = program
    .command('exec <SERVER> <COMMAND...>')
    .summary('run a command on a server')
    .description('Runs a command on a server; its output arrives as it is made.')
    .configureOutput({ outputError: explainOptions })
    .usage('<SERVER> [options] -- <COMMAND> [ARGUMENT...]')
    .option('--cwd <PATH>', 'folder of the workspace to run it in')
    .option('--env <NAME=VALUE>', 'variable for it; may be given several times', collect)
    .option('--timeout <DURATION>', 'end it after this long, such as 30s or 5m')
    .option('-i, --stdin', 'hand it what comes on standard input (text)')
    .addHelpText('after', MORE)
  withConnection(withJson(exec)).action(async (server: string, words: string[], options: Options) => {
    const body = await requestBody(words, options, session.terminal)
    const client = await connect(session, options)
    session.exitCode = await interruptible((signal) =>
      options.json
        ? runAtOnce(session, client, server, body, signal)
        : runStreaming(session, client, server, body, signal),
    )
  })
}

/** An option that exec does not know was most likely meant for the command. */
function explainOptions(text: string, write: (text: string) => void): void {
  const hint = text.includes('unknown option')
    ? 'Put the command behind --: berth exec SERVER -- COMMAND [ARGUMENT...]\n'
    : ''
  write(text.replace(/^error: /, 'berth: ') + hint)
}

async function requestBody(words: string[], options: Options, { stdin }: Terminal): Promise<object> {
  const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout)
  if (timeoutMs === null || timeoutMs === 0)
    throw new UsageError(`--timeout: expected a duration such as 30s or 5m, got "${options.timeout}".`)
  return {
    command: words.length === 1 ? words[0] : shellQuote(words),
    cwd: options.cwd,
    env: options.env && parseVariables(options.env),
    timeoutMs,
    stdin: options.stdin ? utf8(await stdin.bytes()) : undefined,
  }
}

const collect = (pair: string, given: string[] = []): string[] => [...given, pair]

function parseVariables(pairs: string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new UsageError(`--env: expected NAME=VALUE, got ${JSON.stringify(pair)}.`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new CommandError(
      'Standard input must be UTF-8 text. Put other data in a file with "berth files write" first.',
    )
  }
}

/** Runs the call with a signal that Ctrl-C or SIGTERM fires; resolves to its exit code, else to 128+n. */
async function interruptible(call: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController()
  let interrupted: number | undefined
  const listeners = Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }).map(([name, code]) => {
    const listener = () => {
      interrupted = code
      controller.abort()
    }
    process.on(name, listener)
    return () => process.off(name, listener)
  })
  try {
    return await call(controller.signal)
  } catch (error) {
    if (interrupted !== undefined) return interrupted
    throw error
  } finally {
    for (const remove of listeners) remove()
  }
}

async function runAtOnce(
  session: Session,
  client: Client,
  server: string,
  body: object,
  signal: AbortSignal,
): Promise<number> {
  const result = await client.request<Exit>('POST', path`/servers/${server}/exec`, { body, signal })
  await printJson(session, result)
  return result.timedOut ? TIMED_OUT : result.exitCode
}

async function runStreaming(
  session: Session,
  client: Client,
  server: string,
  body: object,
  signal: AbortSignal,
): Promise<number> {
  const { stdout, stderr } = session.terminal
  const events = client.events('POST', path`/servers/${server}/exec`, { body, signal })
  for await (const { event, data } of events) {
    if (event === 'stdout') await stdout.write(outputOf(data))
    if (event === 'stderr') await stderr.write(outputOf(data))
    if (event !== 'exit') continue
    const exit = JSON.parse(data) as Exit
    if (exit.truncated) await stderr.write('berth: the output was longer than is kept; its end is missing\n')
    if (!exit.timedOut) return exit.exitCode
    await stderr.write('berth: the command ran out of time and was ended\n')
    return TIMED_OUT
  }
  throw new CommandError('The connection closed before the command ended. Is berth still running?')
}

/** The bytes of an output event: text, or base64 where the bytes are no UTF-8. */
function outputOf(data: string): Uint8Array | string {
  const { data: text, encoding } = JSON.parse(data) as { data: string; encoding?: 'base64' }
  return encoding === 'base64' ? Buffer.from(text, 'base64') : text
}
