import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ERROR_STATUS, type ErrorCode } from '../../errors.ts'
import type { ApiAnswer } from './api.ts'

/** One server-sent event of the API. */
export interface ServerEvent {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: each event has fields of its own
  readonly data: Readonly<Record<string, any>>
}

/** The answer that an `error` event tells: the body of a failure, and its status. */
export const failed = ({ data }: ServerEvent): ApiAnswer => ({
  status: ERROR_STATUS[data.error as ErrorCode],
  body: data,
})

/** Whether an answer is an event stream. */
export const isEventStream = (answer: Response): boolean =>
  answer.headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** The events of an answer, as they come. Leaving off, or the signal, ends what sends them. @throws what aborted the signal */
export async function* eventsOf(answer: Response, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  if (answer.body === null) return
  const events = answer.body
    .pipeThrough(new TextDecoderStream(), { signal })
    .pipeThrough(new EventSourceParserStream())
  for await (const { event = 'message', data } of events) yield { event, data: JSON.parse(data) }
}
