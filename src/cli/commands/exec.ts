import type { PartsOf, ResponseOf } from '../../client/client.ts'
import { describeRefusal } from '../../compute/outbound.ts'
import { UsageError } from '../../errors.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag, type OptionsOf, repeated, text } from '../options.ts'
import { printJson } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { shellQuote } from '../quote.ts'
import { action } from '../runner.ts'

type ExecRequest = PartsOf<'exec.run'>['body']

/** Exit code of a command that timed out, as in timeout(1). */
const TIMED_OUT = 124

const options = {
  cwd: text('PATH', 'directory of the workspace to run it in'),
  env: repeated('NAME=VALUE', 'variable for it; may be given several times'),
  timeout: text('DURATION', 'end it after this long, such as 30s or 5m'),
  stdin: flag('pass standard input to it (text)', { short: 'i' }),
  tty: flag('run it on a terminal, for programs that draw or ask', { short: 't' }),
}

/** `berth exec` */
export const exec = action({
  usage: 'exec [SERVER] <COMMAND...>',
  shownUsage: '[SERVER] [options] -- <COMMAND> [ARGUMENT...]',
  summary: 'run a command on a server',
  description: 'Runs a command on a server; its output arrives as it is made.',
  access: 'api',
  // An option that exec does not know was probably meant for the command.
  hints: { 'unknown option': 'Put the command behind --: berth exec SERVER -- COMMAND [ARGUMENT...]\n' },
  options,
  help: `
Several words after -- reach the command unchanged; a single one is shell text:
  berth exec srv_… -- grep -r "two words" src
  berth exec srv_… 'cd app && npm test | tail -5'
  berth exec -t srv_… -- top
The exit code is the command's own, or ${TIMED_OUT} when it ran out of time. Ctrl-C ends the command.
`,
  async run({ session: { context }, args: [words], options, connect, server }) {
    if (options.tty) {
      const { command, cwd, env } = await requestBody(words, { ...options, stdin: undefined }, context)
      if (options.json || options.timeout !== undefined)
        throw new UsageError('-t shows a program as it runs: it takes neither --json nor --timeout.')
      const { attachHere, requireTerminal } = await import('../shell/open.ts')
      requireTerminal(context, 'Leave -t out in a script.')
      const client = await connect()
      return attachHere(client, context, { serverId: await server(), body: { command, cwd, env } })
    }
    const body = await requestBody(words, options, context)
    const client = await connect()
    const params = { serverId: await server() }
    return untilInterrupted(async (signal) => {
      const parts = { params, body, signal }
      if (!options.json) return runStreaming(context, client, parts)
      const result = await client.call('exec.run', parts)
      await printJson(context.stdout, result)
      return exitCodeOf(result)
    })
  },
})

const exitCodeOf = ({ timedOut, exitCode }: Pick<ResponseOf<'exec.run'>, 'timedOut' | 'exitCode'>): number =>
  timedOut ? TIMED_OUT : exitCode

async function requestBody(
  words: readonly string[],
  { timeout, cwd, env, stdin }: OptionsOf<typeof options>,
  context: ProcessContext,
): Promise<ExecRequest> {
  const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout)
  if (timeoutMs === null || timeoutMs === 0)
    throw new UsageError(`--timeout: expected a duration such as 30s or 5m, got "${timeout}".`)
  const [only = '', ...more] = words
  return {
    command: more.length === 0 ? only : shellQuote(words),
    cwd,
    env: env && parseVariables(env),
    timeoutMs,
    stdin: stdin ? utf8(await context.stdin.bytes()) : undefined,
  }
}

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

async function runStreaming(
  { stdout, stderr }: ProcessContext,
  client: Client,
  parts: PartsOf<'exec.run'>,
): Promise<number> {
  for await (const { event, data } of client.stream('exec.run', parts)) {
    if (event === 'stdout') await stdout.write(outputOf(data))
    if (event === 'stderr') await stderr.write(outputOf(data))
    if (event !== 'exit') continue
    if (data.truncated) await stderr.write('berth: the output was longer than is kept; its end is missing\n')
    if (data.timedOut) await stderr.write('berth: the command ran out of time and was ended\n')
    if (data.exitCode !== 0) {
      for (const refused of data.refused ?? []) await stderr.write(`${describeRefusal(refused)}\n`)
    }
    return exitCodeOf(data)
  }
  throw new CommandError('The connection closed before the command ended. Is berth still running?')
}

/** Returns the bytes of an output event: text, or base64 if the bytes are not UTF-8. */
const outputOf = ({ data, encoding }: { data: string; encoding?: 'base64' }): Uint8Array | string =>
  encoding === 'base64' ? Buffer.from(data, 'base64') : data
