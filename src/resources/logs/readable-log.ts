import type { LogEntry, LogSelection } from '../../hosting/app-runtime/log/entry.ts'
import type { AppLog } from '../../hosting/app-runtime/log/log.ts'
import { type SendEvent, type StreamRun, wantsEventStream } from '../../http/sse.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LogLines, LogQuery } from './model.ts'
import { logSelection } from './selection.ts'

/** A log that callers may read: of a project, a deployment or a build. */
export interface ReadableLog {
  /** The instance's clock, by which the times of queries count. */
  readonly clock: Clock
  /** Returns the selected lines, oldest first. */
  select(selection: LogSelection): Promise<LogEntry[]>
  /** Sends the selected lines as `line` events, then new ones, until the reader disconnects or none can follow. */
  follow(selection: LogSelection, signal: AbortSignal, send: SendEvent): Promise<void>
}

/** Returns the log of an app that may write more. */
export const appLog = (log: AppLog, clock: Clock): ReadableLog => ({
  clock,
  select: (selection) => log.select(selection),
  follow: (selection, signal, send) =>
    log.subscribe(signal, selection, (event) =>
      event.kind === 'entry' ? send('line', event.entry) : send('dropped', { lines: event.entries }),
    ),
})

/** Returns the log of an app that writes no more. */
export const finishedLog = (log: AppLog, clock: Clock): ReadableLog => ({
  clock,
  select: (selection) => log.select(selection),
  async follow(selection, _signal, send) {
    for (const entry of await log.select(selection)) await send('line', entry)
  },
})

/** A request for a log, of a route. */
interface LogRequest {
  readonly query: LogQuery
  readonly request: Request
  stream(run: StreamRun): Response
}

/**
 * Responds with lines of a log as JSON, or as events and then new lines if the caller accepts an event stream.
 *
 * @param finding the log, or why the caller may not read it
 * @throws BerthError 400 for a query that is no selection
 */
export function respondWithLog(
  { query, request, stream }: LogRequest,
  finding: Promise<ReadableLog>,
): Promise<{ logs: LogLines }> | Promise<Response> {
  const selectionOf = ({ clock }: ReadableLog): LogSelection => logSelection(query, clock.now())
  if (!wantsEventStream(request.headers.get('accept')))
    return finding.then<{ logs: LogLines }>(async (log) => ({ logs: await log.select(selectionOf(log)) }))
  return finding.then<Response>((log) => {
    const selection = selectionOf(log)
    return stream((send, gone) => log.follow(selection, gone, send))
  })
}
