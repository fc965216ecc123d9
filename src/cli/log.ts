import type { ResponseOf, StreamEventOf } from '../client/client.ts'
import type { Client } from './client.ts'
import { untilInterrupted } from './interrupt.ts'
import { count, paint, printable } from './output.ts'
import type { OutputStream } from './process-context.ts'
import type { Print } from './runner.ts'

/** The end of a log, as the API gives it. */
type LogEnd = ResponseOf<'projects.logs'>

/** A line of the log of a project or a build. */
export type LogLine = Omit<LogEnd['logs'][number], 'seq'>

/** A log of the API. */
export interface Log {
  /** Reads its last lines. */
  read(tail: number): Promise<LogEnd>
  /** Yields its last lines, and then those that come. */
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

/** Lines of a log that are shown where nothing else is said, as by the API. */
export const DEFAULT_TAIL = 200

/** The width of most sources in logs of projects. */
const SOURCE_WIDTH = 7

/**
 * Returns a line of a log for people. On a terminal it keeps no control characters: what an app prints must not move the
 * reader's cursor.
 *
 * @param width of the column with the source
 */
export function logText(out: OutputStream, { source, text }: LogLine, width = SOURCE_WIDTH): string {
  const shown = out.isTTY ? printable(Bun.stripANSI(text).replaceAll('\t', '    ')) : text
  return `${paint(out, 'dim', source.padEnd(width))}  ${shown}\n`
}

/** Yields the lines of a log as they come, the last `tail` that are there already first. */
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

/** How a log is shown. */
interface LogOptions {
  tail?: number | undefined
  follow?: boolean | undefined
  width?: number
}

/**
 * Prints the end of a log; with `follow` continues with new lines.
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
