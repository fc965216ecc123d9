import type { BerthError } from '../errors.ts'
import { streamInstead } from './accept.ts'

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

/** Bytes that may be buffered for a slow client before `send` waits. */
const HIGH_WATER = 256 * 1024

/** Responds with an event stream (HTML standard, 9.2). */
export function eventStream(run: StreamRun, until?: StreamEnd): Response {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  let room: (() => void) | null = null
  let keepAlive: ReturnType<typeof setInterval> | undefined
  let leave: (() => void) | undefined
  const stopWatching = (): void => {
    clearInterval(keepAlive)
    leave?.()
  }
  const cut = (): void => {
    stopWatching()
    gone.abort()
    room?.()
  }

  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: SendEvent = (event, data, id) => {
          if (gone.signal.aborted) return
          controller.enqueue(encoder.encode(eventText(event, data, id)))
          if ((controller.desiredSize ?? 0) > 0) return
          const { promise, resolve } = Promise.withResolvers<void>()
          room = resolve
          return promise
        }
        const comment = () => controller.enqueue(encoder.encode(': \n\n'))
        // Bun sends a response's head with its first byte. This tells the client at once that it is connected.
        comment()
        keepAlive = setInterval(() => {
          if (!gone.signal.aborted && (controller.desiredSize ?? 0) > 0) comment()
        }, KEEP_ALIVE_MS)
        leave = until?.((why) => {
          if (gone.signal.aborted) return
          controller.enqueue(encoder.encode(eventText('error', why.toBody())))
          cut()
          controller.close()
        })
        run(send, gone.signal)
          // If the stream ended before its response is sent, Bun would send it as a single body with a length.
          .then(() => new Promise((resolve) => setImmediate(resolve)))
          // Stops the comments and the watcher first: a closed stream accepts no event.
          .then(() => {
            stopWatching()
            if (!gone.signal.aborted) controller.close()
          })
          .catch((error) => {
            stopWatching()
            if (!gone.signal.aborted) controller.error(error)
          })
      },
      pull() {
        room?.()
        room = null
      },
      cancel: cut,
    },
    { highWaterMark: HIGH_WATER, size: (chunk) => chunk?.byteLength ?? 0 },
  )
  return new Response(stream, {
    headers: { 'content-type': EVENT_STREAM_TYPE, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  })
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
