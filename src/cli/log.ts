import type { ResponseOf, StreamEventOf } from '../route-client/client.ts'
import type { Client } from './client.ts'
import type { Print } from './command.ts'
import { CommandError } from './errors.ts'
import { untilInterrupted } from './interrupt.ts'
import { flag, tail, textOption } from './options.ts'
import { count, paint, printable } from './output.ts'
import type { OutputStream } from './process-context.ts'

/** The last lines of a log. */
type LogEnd = ResponseOf<'projects.logs'>

/** A line of the log of a project or a build. One of the command line's own has no `seq`. */
export type LogLine = Omit<LogEnd['logs'][number], 'seq'> & { readonly seq?: number }

/** Which lines of a log are wanted. */
interface LogPart {
  /** How many of the last lines. Undefined: all of those since a time, else the API's default. */
  tail?: number | undefined
  /** A time (RFC 3339), or a duration such as `10m`. */
  since?: string | undefined
  /** The name of a worker whose lines alone are wanted. */
  worker?: string | undefined
}

/** A log that the API offers. */
export interface Log {
  readonly client: Client
  /** Reads lines. */
  read(part: LogPart): Promise<LogEnd>
  /** Yields lines, and then new ones. */
  stream(part: LogPart, signal: AbortSignal): AsyncGenerator<StreamEventOf<'projects.logs'>, void>
}

/** Which lines of a log without workers are wanted. */
type PlainLogPart = Omit<LogPart, 'worker'>

/** Returns the log of a project. */
export const projectLog = (client: Client, projectId: string): Log => ({
  client,
  read: (query) => client.call('projects.logs', { params: { projectId }, query }),
  stream: (query, signal) => client.stream('projects.logs', { params: { projectId }, query, signal }),
})

/** Returns the log of a build. */
export const buildLog = (client: Client, { serverId, id }: { serverId: string; id: string }): Log => ({
  client,
  read: (query: PlainLogPart) => client.call('builds.logs', { params: { serverId, buildId: id }, query }),
  stream: (query: PlainLogPart, signal) =>
    client.stream('builds.logs', { params: { serverId, buildId: id }, query, signal }),
})

/** Returns the log of what a server publishes. */
export const deploymentLog = (client: Client, serverId: string): Log => ({
  client,
  read: (query) => client.call('deployments.logs', { params: { serverId }, query }),
  stream: (query, signal) => client.stream('deployments.logs', { params: { serverId }, query, signal }),
})

/** Default number of lines of a log, the API's too. */
export const DEFAULT_TAIL = 200

/** Largest number of lines that the API returns at once. */
export const ALL_LINES = 10_000

/** Number of log lines shown for a failure with `--json`. */
const FAILURE_LINES = 50

/** Width of most sources in logs of projects. */
const SOURCE_WIDTH = 7

/**
 * Returns a line of a log for people. On a terminal, removes control characters: an app's output must not move the
 * cursor.
 *
 * @param width of the column with the source, or the worker
 */
export function logText(
  out: OutputStream,
  { source, worker = source, text }: LogLine,
  width = SOURCE_WIDTH,
): string {
  const shown = out.isTTY ? printable(Bun.stripANSI(text).replaceAll('\t', '    ')) : text
  return `${paint(out, 'dim', worker.padEnd(width))}  ${shown}\n`
}

/** Yields lines of a log, and then new ones. */
export async function* followLog(
  log: Log,
  part: LogPart,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void> {
  let at = ''
  for await (const { event, data } of log.stream(part, signal)) {
    if (event === 'dropped')
      yield { at, source: 'berth', text: `${count(data.lines, 'line')} came too fast and are left out here.` }
    if (event !== 'line') continue
    at = data.at
    yield data
  }
}

/** Prints the end of a log, to explain a failure. */
export async function printLogEnd(out: OutputStream, log: Log, width?: number): Promise<void> {
  const { logs } = await log.read({ tail: FAILURE_LINES })
  for (const line of logs) await out.write(logText(out, line, width))
}

/** How to show a log. */
interface LogOptions extends LogPart {
  follow?: boolean | undefined
  timestamps?: boolean | undefined
  /** Of the column with the source. */
  width?: number
}

/** The options of commands that print a log. */
export const LOG_OPTIONS = {
  follow: flag('continue with new lines, until Ctrl-C; with --json one line each', { short: 'f' }),
  tail: tail(DEFAULT_TAIL),
  since: textOption(
    'TIME',
    'only lines since then: a time (2026-01-31T12:00:00Z), or how long ago (10m; a number alone is seconds)',
  ),
  timestamps: flag('begin each line with its time', { short: 't' }),
} as const

/** The options of commands that print the log of an app, which may have workers. */
export const APP_LOG_OPTIONS = {
  ...LOG_OPTIONS,
  worker: textOption('NAME', 'only what the worker of this name has printed'),
} as const

/**
 * Checks that an app has a worker.
 *
 * @param app how messages call it
 * @param name of the worker; undefined if none is asked for
 * @throws CommandError that names the workers which there are
 */
export function checkWorker(
  app: string,
  workers: readonly { name: string }[],
  name: string | undefined,
): void {
  if (name === undefined || workers.some((worker) => worker.name === name)) return
  const names = workers.map((worker) => worker.name).join(', ')
  throw new CommandError(
    `${app} has no worker ${JSON.stringify(name)}. ${names === '' ? 'It has none.' : `Its workers: ${names}.`}`,
  )
}

/**
 * Prints the last lines of a log; with `follow`, continues with new lines.
 *
 * @returns the exit code
 * @throws CommandError if the instance stops meanwhile
 */
export async function showLog(
  print: Print,
  log: Log,
  { tail, since, worker, follow, timestamps, width }: LogOptions,
): Promise<number> {
  const part = { tail, since, worker }
  const textOf = (out: OutputStream, line: LogLine): string =>
    `${timestamps ? `${paint(out, 'dim', line.at)}  ` : ''}${logText(out, line, width)}`
  if (follow) {
    return untilInterrupted(async (signal) => {
      for await (const line of followLog(log, part, signal))
        await print(line, (_, { out }) => textOf(out, line))
      // The stream also ends where nothing more can come, such as that of a build.
      if (!(await log.client.isGone())) return 0
      throw new CommandError(
        `The instance at ${log.client.baseUrl} has stopped, so the log ends here. Start it with "berth serve", and follow again.`,
      )
    })
  }
  await print(await log.read(part), ({ logs }, { out }) => logs.map((line) => textOf(out, line)).join(''))
  return 0
}
