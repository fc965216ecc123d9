import type { BerthError } from '../errors.ts'
import { onAbort } from '../runtime/wait.ts'
import { streamInstead } from './accept.ts'
import { byteStream } from './byte-stream.ts'

/**
 * Sends a server-sent event. Resolves when the client can take more.
 *
 * @param id a client that reconnects sends it in `Last-Event-ID`; must not contain line breaks
 */
export type SendEvent = (event: string, data: unknown, id?: string) => Promise<void> | void

/** Produces an event stream, which ends when this resolves. The signal fires when the client disconnects. */
export type StreamRun = (send: SendEvent, gone: AbortSignal) => Promise<void>

/**
 * Watches for a reason to end an event stream early. It calls `end` with an error, which is sent as the last event,
 * `error`.
 *
 * @returns a function that stops watching
 */
type StreamEnd = (end: (why: BerthError) => void) => () => void

/** Milliseconds between comments that keep proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000

/** Responds with an event stream (HTML standard, 9.2). */
export function eventStream(run: StreamRun, until: StreamEnd = () => () => {}): Response {
  const encoder = new TextEncoder()
  const bytesOf = (event: string, data: unknown, id?: string): Uint8Array =>
    encoder.encode(eventText(event, data, id))
  const comment = encoder.encode(': \n\n')
  return byteStream(
    EVENT_STREAM_TYPE,
    async (send, gone, hasRoom) => {
      // Bun sends a response's head with its first byte. This tells the client at once that it is connected.
      void send(comment)
      const keepAlive = setInterval(() => hasRoom() && send(comment), KEEP_ALIVE_MS)
      using _gone = onAbort(gone, () => clearInterval(keepAlive))
      try {
        await run((event, data, id) => send(bytesOf(event, data, id)), gone)
      } finally {
        clearInterval(keepAlive)
      }
    },
    (end) => until((why) => end(bytesOf('error', why.toBody()))),
  )
}

function eventText(event: string, data: unknown, id?: string): string {
  const head = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
  return `${head}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Where a stream of kept entries begins. */
export interface StreamStart {
  /** The position behind which it begins. */
  readonly from: number
  /** Whether the last entry that the client received is no longer kept, so that others may be missing. */
  readonly hasGap: boolean
}

/**
 * Returns where a stream goes on for a client that reconnects with `Last-Event-ID` (HTML standard, 9.2.3); null for any
 * other. The client requests the same URL again, so the query still asks for the first beginning.
 *
 * @param find returns the position of an entry by the id of its event; undefined if it is not kept
 */
export async function resumedStart(
  request: Request,
  find: (id: string) => number | undefined | Promise<number | undefined>,
): Promise<StreamStart | null> {
  const id = request.headers.get('last-event-id')
  if (!id) return null
  const position = await find(id)
  return { from: position ?? 0, hasGap: position === undefined }
}

/** Returns a stream that begins with the event `gap` if entries may be missing before its first one. */
export const afterGap =
  ({ hasGap }: StreamStart, run: StreamRun): StreamRun =>
  async (send, gone) => {
    if (hasGap) await send('gap', {})
    await run(send, gone)
  }

/** The media type of event streams. */
export const EVENT_STREAM_TYPE = 'text/event-stream'

/** Reports whether a client wants an event stream in place of JSON. */
export const wantsEventStream = (accept: string | undefined | null): boolean =>
  streamInstead(accept, [EVENT_STREAM_TYPE]) !== null
