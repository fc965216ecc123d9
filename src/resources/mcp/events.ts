import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ERROR_STATUS, type ErrorCode } from '../../errors.ts'
import type { ApiResponse } from './callers-api.ts'

/** One server-sent event of the API. */
export interface ServerEvent {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: each event has fields of its own
  readonly data: Readonly<Record<string, any>>
}

/** Converts an `error` event to the failure that it carries. */
export const failureOfEvent = ({ data }: ServerEvent): ApiResponse => ({
  status: ERROR_STATUS[data.error as ErrorCode],
  body: data,
})

/** Reports whether a response is an event stream. */
export const isEventStream = (response: Response): boolean =>
  response.headers.get('content-type')?.startsWith('text/event-stream') ?? false

/**
 * Yields the events of a response as they arrive. Breaking off the loop or aborting the signal ends the request.
 *
 * @throws the reason of the aborted signal
 */
export async function* eventsOf(response: Response, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  if (response.body === null) return
  const events = response.body
    .pipeThrough(new TextDecoderStream(), { signal })
    .pipeThrough(new EventSourceParserStream())
  for await (const { event = 'message', data } of events) yield { event, data: JSON.parse(data) }
}
