import type { LogLines } from '../resources/projects/model.ts'
import type { Client } from './client.ts'
import { count } from './format.ts'
import { untilInterrupted } from './interrupt.ts'
import { paint, printable } from './output.ts'
import { printJson, type Session } from './session.ts'
import type { Sink } from './terminal.ts'

/** A line of the log of a project or a build. */
export type LogLine = LogLines[number]

/** As wide as the sources that there mostly are in logs of projects. */
const SOURCE_WIDTH = 7

/**
 * A line of a log for people. On a terminal it keeps no control characters: what an app prints must not
 * move the cursor of who reads it.
 *
 * @param width of the column in which it says where it comes from
 */
export function logText(sink: Sink, { source, text }: LogLine, width = SOURCE_WIDTH): string {
  const shown = sink.isTTY ? printable(Bun.stripANSI(text).replaceAll('\t', '    ')) : text
  return `${paint(sink, 'dim', source.padEnd(width))}  ${shown}\n`
}

/**
 * The lines of a log as they come, the last `tail` that are there already first.
 *
 * @param log its path of the API
 */
export async function* followLog(
  client: Client,
  log: string,
  tail: number,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void> {
  const events = client.events('GET', log, {
    query: { tail: String(tail) },
    signal,
  })
  let at = ''
  for await (const { event, data } of events) {
    if (event === 'dropped') {
      const { lines } = JSON.parse(data) as { lines: number }
      yield { at, source: 'berth', text: `${count(lines, 'line')} came too fast and are left out here.` }
    }
    if (event !== 'line') continue
    const line = JSON.parse(data) as LogLine
    at = line.at
    yield line
  }
}

/** The end of a log. @param log its path of the API */
export const readLog = (client: Client, log: string, tail: number): Promise<{ logs: LogLines }> =>
  client.request('GET', log, { query: { tail: String(tail) } })

/**
 * Prints the end of a log, and goes on with what comes where that is wished for.
 *
 * @param log its path of the API
 * @returns the exit code
 */
export async function showLog(
  session: Session,
  client: Client,
  log: string,
  { tail, follow, json, width }: { tail: number; follow?: boolean; json?: boolean; width?: number },
): Promise<number> {
  const { stdout } = session.terminal
  if (follow) {
    return untilInterrupted(async (signal) => {
      for await (const line of followLog(client, log, tail, signal))
        await (json ? printJson(session, line) : stdout.write(logText(stdout, line, width)))
      return 0
    })
  }
  const answer = await readLog(client, log, tail)
  if (json) await printJson(session, answer)
  else await stdout.write(answer.logs.map((line) => logText(stdout, line, width)).join(''))
  return 0
}
