import { describeRefusal } from '../../compute/sandbox.ts'
import { UsageError } from '../../errors.ts'
import { FRAME_KINDS, FRAMES_TYPE, readFrames } from '../../resources/exec/frames.ts'
import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Client, FailureBody } from '../client.ts'
import { action, type Invocation } from '../command.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import type { ServerPlace } from '../names.ts'
import { flag, type OptionsOf, repeatedOption, textOption } from '../options.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'

type ExecRequest = PartsOf<'exec.run'>['body']
type StreamQuery = PartsOf<'exec.stream'>['query']
type ExecResult = ResponseOf<'exec.stream'>
type ExecEnd = Omit<ExecResult, 'stdout' | 'stderr'>

/** Exit code of a command that timed out, as in timeout(1). */
const TIMED_OUT = 124

/** The exit code of a command that signal n ended is this much more than n. */
const KILLED = 128

/** Bytes of a command in a URL, encoded, well below what an HTTP request's head may have. @bound system */
const MAX_URL_COMMAND = 12 * 1024

const options = {
  cwd: textOption('PATH', 'directory of the workspace to run it in'),
  env: repeatedOption('NAME=VALUE', 'variable for it; may be given several times'),
  timeout: textOption('DURATION', 'end it after this long, such as 30s or 5m'),
  stdin: flag('pass standard input to it, as it comes', { short: 'i' }),
  detach: flag('print the id of an execution, and leave the command running', { short: 'd' }),
  tty: flag('run it on a terminal, for programs that draw or ask', { short: 't' }),
}

/** `berth exec` */
export const exec = action({
  usage: 'exec [SERVER] <COMMAND...>',
  operations: ['exec.run', 'exec.stream'],
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
  tar c . | berth exec -i srv_… -- tar x
  berth exec -t srv_… -- top
SERVER may be the name of a project too: the command then runs on its server, in the project's directory.
With --detach it prints an id for "berth executions", which reads the output,
and with -i writes to the command. The exit code is the command's own, or ${TIMED_OUT} when it ran out of time. Ctrl-C ends the command.
`,
  async run(invocation) {
    const {
      session: { context },
      args: [words],
      options,
      connect,
      print,
    } = invocation
    const place = () => findPlace(invocation, words)
    if (options.tty) {
      const { command, cwd, env } = requestBody(words, options)
      if (options.detach) throw new UsageError('--detach does not go with -t: use "berth terminals create".')
      if (options.json || options.timeout !== undefined)
        throw new UsageError('-t shows a program as it runs: it takes neither --json nor --timeout.')
      const { attachHere, requireTerminal } = await import('../shell/open.ts')
      requireTerminal(context, 'Leave -t out in a script.')
      const client = await connect()
      const { serverId, directory } = await place()
      return attachHere(client, context, { serverId, body: { command, cwd: cwd ?? directory, env } })
    }
    const body = requestBody(words, options)
    if (options.detach) {
      const client = await connect()
      const { serverId, directory } = await place()
      const cwd = options.cwd ?? directory
      const detached = { ...body, cwd, detach: true, ...(options.stdin ? { openStdin: true } : {}) }
      const response = await client.call('exec.run', { params: { serverId }, body: detached })
      if (!('execution' in response)) throw new CommandError('The instance does not know detached commands.')
      return print(response, ({ execution }) => `${execution.id}\n`)
    }
    const query = options.stdin ? streamQuery(body) : null
    const client = await connect()
    const { serverId, directory } = await place()
    const params = { serverId }
    const cwd = options.cwd ?? directory
    const inOne = (signal: AbortSignal) => {
      const parts = { params, body: { ...body, cwd }, signal }
      return {
        // Only a command that detaches has another response.
        whole: () => client.call('exec.run', parts) as Promise<ExecResult>,
        frames: () => client.bytes('exec.run', FRAMES_TYPE, parts),
      }
    }
    const withInput = (query: StreamQuery, signal: AbortSignal) => {
      const parts = { params, query: { ...query, cwd }, bytes: context.stdin.stream(), signal }
      return {
        whole: () => client.call('exec.stream', parts),
        frames: () => client.bytes('exec.stream', FRAMES_TYPE, parts),
      }
    }
    return untilInterrupted(async (signal) => {
      const { whole, frames } = query === null ? inOne(signal) : withInput(query, signal)
      // As JSON it is printed at its end; for people, as it is made.
      const result = options.json ? await whole() : await printOutput(context, client, frames())
      await print(result, () => '')
      return exitCodeOf(result)
    })
  },
})

/**
 * Returns where the command runs.
 *
 * @throws UsageError if the only word is the name of a server, so that the command is missing
 */
async function findPlace(
  { place, idOf }: Pick<Invocation<unknown, unknown>, 'place' | 'idOf'>,
  [only, ...more]: readonly string[],
): Promise<ServerPlace> {
  try {
    return await place()
  } catch (error) {
    if (only === undefined || more.length > 0 || !(error instanceof CommandError)) throw error
    const serverId = await idOf('SERVER', only).catch(() => null)
    if (serverId === null) throw error
    throw new UsageError(
      `${JSON.stringify(only)} is a server, and the command is missing: berth exec ${shellQuote([only])} -- COMMAND`,
    )
  }
}

const exitCodeOf = ({ timedOut, exitCode }: Pick<ExecResult, 'timedOut' | 'exitCode'>): number =>
  timedOut ? TIMED_OUT : exitCode

function requestBody(
  words: readonly string[],
  { timeout, cwd, env }: Pick<OptionsOf<typeof options>, 'timeout' | 'cwd' | 'env'>,
): ExecRequest {
  const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout)
  if (timeoutMs === null || timeoutMs === 0)
    throw new UsageError(`--timeout: expected a duration such as 30s or 5m, got "${timeout}".`)
  const [only = '', ...more] = words
  return {
    command: more.length === 0 ? only : shellQuote(words),
    cwd,
    env: env && parseVariables(env),
    timeoutMs,
  }
}

/**
 * Returns the query of a command with a stream for its input. Variables become a part of the command, since a query has
 * no place for them.
 *
 * @throws UsageError if the command is too long for a URL
 */
function streamQuery({ command, cwd, env, timeoutMs }: ExecRequest): StreamQuery {
  const variables = Object.entries(env ?? {}).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name))
      throw new UsageError(`--env: ${JSON.stringify(name)} is not a name of a variable.`)
    return `${name}=${shellQuote([value ?? ''])}`
  })
  const whole = variables.length === 0 ? command : `export ${variables.join(' ')}; ${command}`
  const bytes = encodeURIComponent(whole).length
  if (bytes > MAX_URL_COMMAND) {
    throw new UsageError(
      `With -i a command may have ${MAX_URL_COMMAND} bytes once it is encoded for a URL; this one has ${bytes}. Write it to a file with "berth files write" and run that.`,
    )
  }
  return { command: whole, cwd, timeoutMs }
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

/** Prints output as it comes. Returns how the command ended. */
async function printOutput(
  { stdout, stderr }: ProcessContext,
  client: Client,
  response: AsyncIterable<Uint8Array>,
): Promise<ExecEnd> {
  for await (const { kind, payload } of readFrames(response)) {
    if (kind === FRAME_KINDS.stdout) await stdout.write(payload)
    else if (kind === FRAME_KINDS.stderr) await stderr.write(payload)
    else if (kind === FRAME_KINDS.error) {
      const body = JSON.parse(Buffer.from(payload).toString()) as FailureBody
      throw client.errorFromBody(body) ?? new CommandError('The command could not be run.')
    } else {
      const end = JSON.parse(Buffer.from(payload).toString()) as ExecEnd
      await printEnd(stderr, client, end)
      return end
    }
  }
  throw new CommandError('The connection closed before the command ended. Is berth still running?')
}

async function printEnd(stderr: OutputStream, client: Client, end: ExecEnd): Promise<void> {
  if (end.truncated) await stderr.write('berth: the output was longer than is kept; its end is missing\n')
  if (end.timedOut) await stderr.write('berth: the command ran out of time and was ended\n')
  else if (end.exitCode > KILLED && (await client.isGone()))
    await stderr.write(`berth: the instance at ${client.baseUrl} has stopped, which ended the command\n`)
  if (end.exitCode !== 0) {
    for (const refused of end.refused ?? []) await stderr.write(`${describeRefusal(refused)}\n`)
  }
}
