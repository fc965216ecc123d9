import type { ResponseOf, StreamEventOf } from '../client/client.ts'
import type { Client } from './client.ts'
import { untilInterrupted } from './interrupt.ts'
import { count, paint, printable } from './output.ts'
import type { OutputStream } from './process-context.ts'
import type { Print } from './runner.ts'

/** The last lines of a log. */
type LogEnd = ResponseOf<'projects.logs'>

/** A line of the log of a project or a build. */
export type LogLine = Omit<LogEnd['logs'][number], 'seq'>

/** A log that the API offers. */
export interface Log {
  /** Reads the last lines. */
  read(tail: number): Promise<LogEnd>
  /** Yields the last lines, and then new ones. */
  stream(tail: number, signal: AbortSignal): AsyncGenerator<StreamEventOf<'projects.logs'>, void>
}

/** Returns the log of a project. */
export const projectLog = (client: Client, projectId: string): Log => ({
  read: (tail) => client.call('projects.logs', { params: { projectId }, query: { tail } }),
  stream: (tail, signal) =>
    client.stream('projects.logs', { params: { projectId }, query: { tail }, signal }),
})

/** Returns the log of a build. */
export const buildLog = (client: Client, { serverId, id }: { serverId: string; id: string }): Log => ({
  read: (tail) => client.call('builds.logs', { params: { serverId, buildId: id }, query: { tail } }),
  stream: (tail, signal) =>
    client.stream('builds.logs', { params: { serverId, buildId: id }, query: { tail }, signal }),
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
 * @param width of the column with the source
 */
export function logText(out: OutputStream, { source, text }: LogLine, width = SOURCE_WIDTH): string {
  const shown = out.isTTY ? printable(Bun.stripANSI(text).replaceAll('\t', '    ')) : text
  return `${paint(out, 'dim', source.padEnd(width))}  ${shown}\n`
}

/** Yields the last `tail` lines of a log, and then new ones. */
export async function* followLog(log: Log, tail: number, signal: AbortSignal): AsyncGenerator<LogLine, void> {
  let at = ''
  for await (const { event, data } of log.stream(tail, signal)) {
    if (event === 'dropped')
      yield { at, source: 'berth', text: `${count(data.lines, 'line')} came too fast and are left out here.` }
    if (event !== 'line') continue
    at = data.at
    yield data
  }
}

/** Prints the end of a log, to explain a failure. */
export async function printLogEnd(out: OutputStream, log: Log, width?: number): Promise<void> {
  const { logs } = await log.read(FAILURE_LINES)
  for (const line of logs) await out.write(logText(out, line, width))
}

/** How to show a log. */
interface LogOptions {
  tail?: number | undefined
  follow?: boolean | undefined
  width?: number
}

/**
 * Prints the last lines of a log; with `follow`, continues with new lines.
 *
 * @returns the exit code
 */
export async function showLog(
  print: Print,
  log: Log,
  { tail = DEFAULT_TAIL, follow, width }: LogOptions,
): Promise<number> {
  if (follow) {
    return untilInterrupted(async (signal) => {
      for await (const line of followLog(log, tail, signal))
        await print(line, (_, { out }) => logText(out, line, width))
      return 0
    })
  }
  await print(await log.read(tail), ({ logs }, { out }) =>
    logs.map((line) => logText(out, line, width)).join(''),
  )
  return 0
}
