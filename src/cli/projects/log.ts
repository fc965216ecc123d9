import type { LogLines } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { count } from '../format.ts'
import { untilInterrupted } from '../interrupt.ts'
import { paint, printable } from '../output.ts'
import { path } from '../path.ts'
import { printJson, type Session } from '../session.ts'
import type { Sink } from '../terminal.ts'

/** A line of a project's log. */
export type LogLine = LogLines[number]

/** As wide as the sources that there mostly are. */
const SOURCE_WIDTH = 7

/**
 * A line of a log for people. On a terminal it keeps no control characters: what an app prints must not
 * move the cursor of who reads it.
 */
export function logText(sink: Sink, { source, text }: LogLine): string {
  const shown = sink.isTTY ? printable(Bun.stripANSI(text).replaceAll('\t', '    ')) : text
  return `${paint(sink, 'dim', source.padEnd(SOURCE_WIDTH))}  ${shown}\n`
}

/** The lines of a project's log as they come, the last `tail` that are there already first. */
export async function* followLog(
  client: Client,
  projectId: string,
  tail: number,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void> {
  const events = client.events('GET', path`/projects/${projectId}/logs`, {
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

/** The end of a project's log. */
export const readLog = (client: Client, projectId: string, tail: number): Promise<{ logs: LogLines }> =>
  client.request('GET', path`/projects/${projectId}/logs`, { query: { tail: String(tail) } })

/**
 * Prints the end of a project's log, and goes on with what comes where that is wished for.
 *
 * @returns the exit code
 */
export async function showLog(
  session: Session,
  client: Client,
  projectId: string,
  { tail, follow, json }: { tail: number; follow?: boolean; json?: boolean },
): Promise<number> {
  const { stdout } = session.terminal
  if (follow) {
    return untilInterrupted(async (signal) => {
      for await (const line of followLog(client, projectId, tail, signal))
        await (json ? printJson(session, line) : stdout.write(logText(stdout, line)))
      return 0
    })
  }
  const answer = await readLog(client, projectId, tail)
  if (json) await printJson(session, answer)
  else await stdout.write(answer.logs.map((line) => logText(stdout, line)).join(''))
  return 0
}
