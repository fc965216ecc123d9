import type { AppLog, LogEntry, LogSelection } from '../../hosting/app.ts'
import { afterGap, resumedStart, type SendEvent, type StreamRun, wantsEventStream } from '../../http/sse.ts'
import type { Clock } from '../../runtime/clock.ts'
import { type AppLogQuery, type LogLines, logSelection, MAX_TAIL } from './model.ts'

/** A log that callers may read: of a project, a deployment or a build. */
export interface ReadableLog {
  /** The instance's clock, by which the times of queries count. */
  readonly clock: Clock
  /** Returns the selected lines, oldest first. */
  select(selection: LogSelection): Promise<LogEntry[]>
  /** Sends the selected lines as `line` events, then new ones, until the reader disconnects or none can follow. */
  follow(selection: LogSelection, signal: AbortSignal, send: SendEvent): Promise<void>
}

/** Sends a line of a log. Its number is the id of the event. */
export const sendLine = (send: SendEvent, entry: LogEntry): Promise<void> | void =>
  send('line', entry, String(entry.seq))

/** Returns the log of an app that may write more. */
export const appLog = (log: AppLog, clock: Clock): ReadableLog => ({
  clock,
  select: (selection) => log.select(selection),
  follow: (selection, signal, send) =>
    log.subscribe(signal, selection, (event) =>
      event.kind === 'entry' ? sendLine(send, event.entry) : send('dropped', { lines: event.entries }),
    ),
})

/** Returns the log of an app that writes no more. */
export const finishedLog = (log: AppLog, clock: Clock): ReadableLog => ({
  clock,
  select: (selection) => log.select(selection),
  async follow(selection, _signal, send) {
    for (const entry of await log.select(selection)) await sendLine(send, entry)
  },
})

/** A request for a log, of a route. */
interface LogRequest {
  readonly query: AppLogQuery
  readonly request: Request
  stream(run: StreamRun): Response
}

/**
 * Responds with lines of a log as JSON, or as events and then new lines if the caller accepts an event stream.
 *
 * @param finding the log, or why the caller may not read it
 * @throws BerthError 400 for a query that is not a selection
 */
export function respondWithLog(
  { query, request, stream }: LogRequest,
  finding: Promise<ReadableLog>,
): Promise<{ logs: LogLines }> | Promise<Response> {
  const selectionOf = ({ clock }: ReadableLog): LogSelection => logSelection(query, clock.now())
  if (!wantsEventStream(request.headers.get('accept')))
    return finding.then<{ logs: LogLines }>(async (log) => ({ logs: await log.select(selectionOf(log)) }))
  return finding.then<Response>(async (log) => {
    const selection = selectionOf(log)
    const start = await resumedStart(request, (id) => findLine(log, Number(id), selection.worker))
    if (start === null) return stream((send, gone) => log.follow(selection, gone, send))
    const rest = { ...selection, tail: MAX_TAIL, after: start.from }
    return stream(afterGap(start, (send, gone) => log.follow(rest, gone, send)))
  })
}

/** Returns the number of a line; undefined if it is not among the last ones that a response can have. */
const findLine = async (log: ReadableLog, seq: number, worker?: string): Promise<number | undefined> =>
  (await log.select({ tail: MAX_TAIL, worker })).find((entry) => entry.seq === seq)?.seq
